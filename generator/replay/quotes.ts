import { createReadStream } from 'node:fs';
import { CsvError, parse } from 'csv-parse';
import { type Micros, parseTimestamp } from '../../schemas/timestamp.ts';

/** One quote of a file. */
export interface Quote {
  /** Line in the file, the header is 1. */
  readonly line: number;
  readonly timestamp: Micros;
  readonly bid: number;
  readonly ask: number;
}

/** What is wrong with a line of a quote file. */
export interface QuoteFault {
  readonly line: number;
  readonly reason: string;
}

export type QuoteRow =
  | { readonly ok: true; readonly quote: Quote }
  | { readonly ok: false; readonly fault: QuoteFault };

/** What a file holds, read once before anything is sent. */
export interface Survey {
  readonly rows: number;
  /** Earliest and latest time in the file, whatever its order. */
  readonly first: Micros;
  readonly last: Micros;
  /** Quotes whose ask is below their bid: told, and sent with a negative spread. */
  readonly crossed: number;
  /** The first faults; `faultCount` counts all. */
  readonly faults: readonly QuoteFault[];
  readonly faultCount: number;
}

const COLUMNS = ['timestamp', 'bid', 'ask'] as const;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
/** A longer line is no quote: most likely the file is no text. */
const LINE_BYTES_MAX = 65_536;
const FAULTS_TOLD_MAX = 10;

interface ParsedLine {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

/**
 * Reads a CSV file whose header names at least `timestamp,bid,ask`, in any order, line by line:
 * the memory used does not depend on the file's length.
 * @throws what the file system throws.
 */
export async function* readQuotes(file: string): AsyncGenerator<QuoteRow> {
  const parser = parse({
    bom: true,
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    trim: true,
    max_record_size: LINE_BYTES_MAX,
  });
  const stream = createReadStream(file, { highWaterMark: 256 * 1024 });
  stream.once('error', (error) => parser.destroy(error));
  stream.pipe(parser);
  let columns: Columns | undefined;
  try {
    for await (const { record, info } of parser as AsyncIterable<ParsedLine>) {
      if (columns === undefined) {
        const found = findColumns(record);
        if (typeof found === 'string') return yield fault(info.lines, found);
        columns = found;
      } else {
        yield readQuote(record, info.lines, columns);
      }
    }
    if (columns === undefined) yield fault(1, 'the file is empty; it needs a header and rows');
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    // The parser's own words end with the bytes it met; those of a binary file say nothing.
    const [what] = error.message.split(/, value is|: got/);
    yield fault(Number(error.lines ?? 0), `not CSV (${what!.slice(0, 200)})`);
  } finally {
    stream.destroy();
  }
}

/** Reads a file to its end and tells what is in it, without keeping it. */
export async function surveyQuotes(file: string): Promise<Survey> {
  let rows = 0;
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  let crossed = 0;
  let faultCount = 0;
  const faults: QuoteFault[] = [];
  for await (const row of readQuotes(file)) {
    if (!row.ok) {
      faultCount += 1;
      if (faults.length < FAULTS_TOLD_MAX) faults.push(row.fault);
      continue;
    }
    const { timestamp, bid, ask } = row.quote;
    rows += 1;
    first = Math.min(first, timestamp);
    last = Math.max(last, timestamp);
    if (ask < bid) crossed += 1;
  }
  if (rows === 0 && faultCount === 0) {
    faultCount = 1;
    faults.push({ line: 2, reason: 'the file has a header but no rows' });
  }
  return { rows, first, last, crossed, faults, faultCount };
}

interface Columns {
  readonly timestamp: number;
  readonly bid: number;
  readonly ask: number;
  readonly count: number;
}

function findColumns(header: readonly string[]): Columns | string {
  const names = header.map((name) => name.toLowerCase());
  const missing = COLUMNS.filter((name) => !names.includes(name));
  if (missing.length > 0) {
    const got = header.join(',').slice(0, 80);
    return `the header lacks ${missing.join(', ')}; got "${got}"`;
  }
  const twice = COLUMNS.find((name) => names.indexOf(name) !== names.lastIndexOf(name));
  if (twice !== undefined) return `the header names ${twice} twice`;
  return {
    timestamp: names.indexOf('timestamp'),
    bid: names.indexOf('bid'),
    ask: names.indexOf('ask'),
    count: names.length,
  };
}

function readQuote(record: readonly string[], line: number, columns: Columns): QuoteRow {
  if (record.length !== columns.count) {
    const what = `${record.length} columns, the header has ${columns.count}`;
    return { ok: false, fault: { line, reason: what } };
  }
  const timestamp = parseTimestamp(record[columns.timestamp]!);
  if (!timestamp.ok) {
    return fault(line, `timestamp ${shown(record[columns.timestamp]!)}: ${timestamp.detail}`);
  }
  const bid = readPrice(record[columns.bid]!);
  if (bid === undefined) return badPrice(line, 'bid', record[columns.bid]!);
  const ask = readPrice(record[columns.ask]!);
  if (ask === undefined) return badPrice(line, 'ask', record[columns.ask]!);
  return { ok: true, quote: { line, timestamp: timestamp.micros, bid, ask } };
}

function readPrice(text: string): number | undefined {
  // Number() alone takes "", "0x1f" and "Infinity" too.
  const price = NUMBER.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(price) && price > 0 ? price : undefined;
}

function badPrice(line: number, name: string, text: string): QuoteRow {
  return fault(line, `${name} ${shown(text)} is not a number above 0`);
}

function shown(text: string): string {
  return text === '' ? 'is empty' : JSON.stringify(text.slice(0, 40));
}

function fault(line: number, reason: string): QuoteRow {
  return { ok: false, fault: { line, reason } };
}
