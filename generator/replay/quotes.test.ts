import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../lib/files/package-root.ts';
import { type QuoteRow, readQuotes, surveyQuotes } from './quotes.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-quotes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fileOf(content: string | Buffer): string {
  const file = path.join(folder, 'quotes.csv');
  writeFileSync(file, content);
  return file;
}

const HEADER = 'timestamp,bid,ask';
const GOOD = '2026-01-05T00:00:00.123Z,183.409,183.422';

describe('a faulty file is reported with the line, and nothing is sent', () => {
  const table: [what: string, content: string | Buffer, line: number, reason: RegExp][] = [
    ['an empty file', '', 1, /empty/],
    ['white space only', '\n\n', 1, /empty/],
    ['a header only', `${HEADER}\n`, 2, /no rows/],
    ['no header', `${GOOD}\n`, 1, /lacks timestamp, bid, ask/],
    ['a header without ask', 'timestamp,bid\n', 1, /lacks ask/],
    ['a column twice', 'timestamp,bid,ask,bid\n', 1, /bid twice/],
    ['JSON', '{"timestamp":"2026"}', 1, /not CSV/],
    [
      'random bytes',
      Buffer.from(Array.from({ length: 300 }, (_, i) => (i * 131) % 256)),
      0,
      /not CSV|lacks/,
    ],
    ['a line of 1 MB', `${HEADER}\n${'1'.repeat(1e6)}\n`, 0, /not CSV/],
    ['an open quote', `${HEADER}\n${GOOD}\n"2026`, 3, /not CSV/],
    ['a row too short', `${HEADER}\n${GOOD}\n2026-01-05T00:00:01Z,1\n`, 3, /2 columns/],
    ['a row too long', `${HEADER}\n${GOOD},1\n`, 2, /4 columns/],
    ['a time without zone', `${HEADER}\n2026-01-05T00:00:00,1,2\n`, 2, /zone is missing/],
    ['a count as time', `${HEADER}\n1735689600000,1,2\n`, 2, /ISO 8601/],
    ['no time', `${HEADER}\n,1,2\n`, 2, /timestamp is empty/],
    ['an empty bid', `${HEADER}\n2026-01-05T00:00:00Z,,2\n`, 2, /bid is empty/],
    ['NaN', `${HEADER}\n2026-01-05T00:00:00Z,1,NaN\n`, 2, /ask "NaN"/],
    ['Infinity', `${HEADER}\n2026-01-05T00:00:00Z,Infinity,2\n`, 2, /bid "Infinity"/],
    ['an infinite exponent', `${HEADER}\n2026-01-05T00:00:00Z,1e999,2\n`, 2, /bid "1e999"/],
    ['hexadecimal', `${HEADER}\n2026-01-05T00:00:00Z,0x1f,2\n`, 2, /bid "0x1f"/],
    ['a decimal comma', `${HEADER}\n2026-01-05T00:00:00Z,"1,5",2\n`, 2, /bid "1,5"/],
    ['a price of 0', `${HEADER}\n2026-01-05T00:00:00Z,0,2\n`, 2, /above 0/],
    ['a negative price', `${HEADER}\n2026-01-05T00:00:00Z,1,-2\n`, 2, /ask "-2"/],
  ];
  it.each(table)('%s', async (_, content, line, reason) => {
    const survey = await surveyQuotes(fileOf(content));
    expect(survey.faultCount).toBeGreaterThan(0);
    const [fault] = survey.faults;
    expect(fault!.reason).toMatch(reason);
    if (line > 0) expect(fault!.line).toBe(line);
  });

  it('reports the first ten faults and counts all', async () => {
    const bad = Array.from({ length: 25 }, () => 'x,1,2').join('\n');
    const survey = await surveyQuotes(fileOf(`${HEADER}\n${GOOD}\n${bad}\n`));
    expect(survey).toMatchObject({ rows: 1, faultCount: 25 });
    expect(survey.faults.map(({ line }) => line)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  it('a missing file is a file-system error', async () => {
    const reading = surveyQuotes(path.join(folder, 'none.csv'));
    await expect(reading).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('a good file', () => {
  it('is read with a byte order mark, CRLF, other columns and another order', async () => {
    const text = '\ufeffSource, Ask ,bid,TIMESTAMP\r\nx, 2.5,2.25,2026-01-05T00:00:00.5Z\r\n\r\n';
    const rows: QuoteRow[] = [];
    for await (const row of readQuotes(fileOf(text))) rows.push(row);
    expect(rows).toEqual([
      { ok: true, quote: { line: 2, timestamp: 1767571200500000, bid: 2.25, ask: 2.5 } },
    ]);
  });

  it('may have crossed quotes, out of order: counted, not refused', async () => {
    const rows = `2026-01-05T00:00:09Z,2,1\n${GOOD}\n2026-01-05T00:00:05Z,1,1\n`;
    expect(await surveyQuotes(fileOf(`${HEADER}\n${rows}`))).toEqual({
      rows: 3,
      first: 1767571200123000,
      last: 1767571209000000,
      crossed: 1,
      faults: [],
      faultCount: 0,
    });
  });

  it('is the bundled sample', async () => {
    const sample = path.join(packageRoot, 'generator', 'replay', 'eurjpy-sample-quotes.csv');
    expect(await surveyQuotes(sample)).toMatchObject({ rows: 200, crossed: 0, faultCount: 0 });
  });
});
