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

interface QuoteFault {
  readonly line: number;
  readonly reason: string;
}

export type QuoteRow =
  | { readonly ok: true; readonly quote: Quote }
  | { readonly ok: false; readonly fault: QuoteFault };

export type Survey = Awaited<ReturnType<typeof surveyQuotes>>;

const COLUMNS = ['timestamp', 'bid', 'ask'] as const;
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
/** A longer line is not a quote: most likely the file is not a text file. */
const LINE_BYTES_MAX = 65_536;
const FAULTS_MAX = 10;

interface ParsedLine {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

/**
 * Reads a CSV file whose header names at least `timestamp,bid,ask`, in any order, line by line:
 * memory use does not depend on the file's length.
 * @throws any file-system error
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
    // The parser's message ends with the bytes that it read, which are useless for a binary file.
    const [cause] = error.message.split(/, value is|: got/);
    yield fault(Number(error.lines ?? 0), `not CSV (${cause!.slice(0, 200)})`);
  } finally {
    stream.destroy();
  }
}

/**
 * Reads a file to its end before anything is sent, without keeping its content.
 * @returns its rows; `first` and `last` time, whatever its order; how many quotes are `crossed`, with
 *   an ask below the bid, which are sent with a negative spread; the first faults, and how many
 */
export async function surveyQuotes(file: string) {
  let rows = 0;
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  let crossed = 0;
  let faultCount = 0;
  const faults: QuoteFault[] = [];
  for await (const row of readQuotes(file)) {
    if (!row.ok) {
      faultCount += 1;
      if (faults.length < FAULTS_MAX) faults.push(row.fault);
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

type Columns = Record<(typeof COLUMNS)[number] | 'count', number>;

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
    return fault(line, `${record.length} columns, the header has ${columns.count}`);
  }
  const text = (name: keyof Columns) => record[columns[name]]!;
  const timestamp = parseTimestamp(text('timestamp'));
  if (!timestamp.ok)
    return fault(line, `timestamp ${shown(text('timestamp'))}: ${timestamp.detail}`);
  const [bid, ask] = [readPrice(text('bid')), readPrice(text('ask'))];
  if (bid === undefined || ask === undefined) {
    const name = bid === undefined ? 'bid' : 'ask';
    return fault(line, `${name} ${shown(text(name))} is not a number above 0`);
  }
  return { ok: true, quote: { line, timestamp: timestamp.micros, bid, ask } };
}

function readPrice(text: string): number | undefined {
  // Number() alone also accepts "", "0x1f" and "Infinity".
  const price = NUMBER.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(price) && price > 0 ? price : undefined;
}

function shown(text: string): string {
  return text === '' ? 'is empty' : JSON.stringify(text.slice(0, 40));
}

function fault(line: number, reason: string): QuoteRow {
  return { ok: false, fault: { line, reason } };
}
