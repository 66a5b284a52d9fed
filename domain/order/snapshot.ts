import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { SymbolState } from './judge.ts';

const zip = promisify(gzip);
const unzip = promisify(gunzip);

/** State of the symbols of a partition just before an offset, from which judging can continue. */
export interface Snapshot {
  readonly offset: number;
  readonly symbols: Map<string, SymbolState>;
}

type SymbolRow = [symbol: string, order: number, offset: number, lastLive: number | null];

/** The states as gzipped JSON, for a column beside the position. */
export async function packSymbols(symbols: ReadonlyMap<string, SymbolState>): Promise<Buffer> {
  const rows = [...symbols].map(([name, { order, offset, lastLive }]) => {
    return [name, order, offset, lastLive] satisfies SymbolRow;
  });
  return zip(JSON.stringify(rows));
}

export async function unpackSymbols(bytes: Buffer): Promise<Map<string, SymbolState>> {
  const rows: SymbolRow[] = JSON.parse((await unzip(bytes)).toString('utf8'));
  return new Map(
    rows.map(([symbol, order, offset, lastLive]) => [symbol, { order, offset, lastLive }]),
  );
}

/** A copy, which later records do not change. */
export function copySymbols(symbols: ReadonlyMap<string, SymbolState>): Map<string, SymbolState> {
  return new Map([...symbols].map(([symbol, state]) => [symbol, { ...state }]));
}
