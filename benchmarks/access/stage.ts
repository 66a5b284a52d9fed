import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { readLauncherConfig } from '../../deploy/local/config.ts';
import { startEngines } from '../../deploy/local/engines.ts';
import { ensurePepper } from '../../deploy/local/pepper.ts';
import { placeAt } from '../../deploy/local/place.ts';
import { openPortBook } from '../../deploy/local/ports.ts';
import { waitUntil } from '../../deploy/local/wait.ts';
import { provision } from '../../deploy/provision.ts';
import { readPepper } from '../../lib/access/pepper.ts';
import { nowMicros } from '../../lib/clock.ts';
import {
  API,
  BARE,
  type BenchProcess,
  LATEST,
  type Surroundings,
  startBenchProcess,
} from '../bench-process.ts';
import { connect } from '../http-load/connection.ts';
import { requestOf } from '../http-load/requests.ts';
import { openPillSender } from '../pill-sender.ts';
import { type AccessRows, openAccessRows } from './access-rows.ts';

/** Everything the benchmark measures, in a namespace of its own. */
export interface Stage {
  readonly api: BenchProcess;
  readonly bare: BenchProcess;
  readonly rows: AccessRows;
  readonly symbols: readonly string[];
  /** The embedded PostgreSQL; undefined when it is another's. */
  readonly postgresPid: number | undefined;
}

const PARTITIONS = 4;
const SYMBOLS = 50;
const VISIBLE_MAX_MS = 30_000;

/**
 * Starts engines (those that environment variables name are used as they are), the API and its
 * bare twin with the same pills in view, and runs `work`; afterwards, also on errors, everything
 * that was started is stopped by its pid and its data removed.
 */
export async function withStage<T>(
  say: (line: string) => void,
  work: (stage: Stage) => Promise<T>,
): Promise<T> {
  const stops: (() => Promise<unknown> | undefined)[] = [];
  try {
    return await work(await build(say, stops));
  } finally {
    for (const stop of stops.reverse()) {
      await Promise.resolve(stop()).catch((error: Error) => say(`not stopped: ${error.message}`));
    }
  }
}

async function build(
  say: (line: string) => void,
  stops: (() => Promise<unknown> | undefined)[],
): Promise<Stage> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-bench-'));
  stops.push(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  const place = placeAt(folder);
  const ports = openPortBook(place.ports);
  stops.push(async () => ports.release());
  const namespace = `bench${randomBytes(3).toString('hex')}`;
  const engines = await startEngines({
    ...{ place, ports, say, config: readLauncherConfig() },
    wantedPorts: { kafka: 0, controller: 0, registry: 0, clickhouse: 0, postgres: 0 },
  });
  stops.push(() => engines.stop());
  await provision({ ...engines, namespace, settings: { partitions: PARTITIONS } });
  ensurePepper(place.pepper);

  const rows = openAccessRows(engines.postgresUrl, namespace, readPepper(place.pepper));
  stops.push(() => rows.close());
  const around: Surroundings = { engines, place, ports, namespace };
  const start = async (spec: typeof API) => {
    const started = await startBenchProcess(spec, around);
    stops.push(() => started.stop());
    return started;
  };
  const latest = await start(LATEST);
  const [api, bare] = [await start(API), await start(BARE)];
  const symbols = Array.from({ length: SYMBOLS }, (_, i) => `BENCH.${i}`);
  await sendPills(symbols, around);
  await waitUntil('the pills in view', () => areVisible(symbols, bare.port), {
    timeoutMs: VISIBLE_MAX_MS,
  });
  // Its work is done; it would take CPU from what is measured.
  await latest.stop();
  return { api, bare, rows, symbols, postgresPid: engines.pids().postgres };
}

async function sendPills(
  symbols: readonly string[],
  { engines, namespace }: Surroundings,
): Promise<void> {
  const sender = await openPillSender({ ...engines, namespace }, 5);
  try {
    const sent = await sender.send(
      symbols.map((symbol) => ({
        id: `access-${symbol}`,
        timestamp: nowMicros(),
        symbol,
        gross_spread_percent: 0.125,
        market_state: 'open',
        confidence: 87.5,
      })),
    );
    if (sent.ok !== symbols.length) throw new Error(`Pills were not taken: ${sent.ok}`);
  } finally {
    await sender.close();
  }
}

/** Both processes read one topic: the API is asked when its key is made. */
async function areVisible(symbols: readonly string[], port: number): Promise<boolean> {
  const connection = await connect(port);
  try {
    for (const symbol of symbols) {
      const status = await new Promise<number>((resolve) => {
        connection.ask(requestOf(symbol, null), resolve);
      });
      if (status !== 200) return false;
    }
    return true;
  } finally {
    connection.close();
  }
}
