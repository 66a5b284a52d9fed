import { expect, test } from 'vitest';
import { firstWord, insertWithRows, namesIn, trailingFormat } from './statement.ts';

test.each([
  ['', ''],
  [' -- SET\n/* SET */ select 1', 'SELECT'],
  ['(SELECT 1)', 'SELECT'],
  ["'SET'", ''],
])('first word of %j is %j', (text, word) => {
  expect(firstWord(text)).toBe(word);
});

test.each([
  ['SELECT 1', undefined],
  ['INSERT INTO t SELECT 1 FORMAT CSV', undefined],
  ["INSERT INTO t FROM INFILE 'x' FORMAT CSV", undefined],
  ['INSERT INTO t FORMAT CSV\n1,2', { head: 'INSERT INTO t ', settings: '', format: 'CSV' }],
  [
    "insert into t values (1, 'FORMAT')",
    { head: 'insert into t ', settings: '', format: 'Values' },
  ],
  [
    'INSERT INTO "values" (format, settings) SETTINGS async_insert=0 FORMAT JSONEachRow {}',
    {
      head: 'INSERT INTO "values" (format, settings) ',
      settings: 'SETTINGS async_insert=0 ',
      format: 'JSONEachRow',
    },
  ],
])('insert of %j', (text, expected) => {
  const found = insertWithRows(text);
  if (expected === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject(expected);
});

test('rows begin after one line break', () => {
  const text = 'INSERT INTO t FORMAT TSV \r\n\n1\t2';
  expect(text.slice(insertWithRows(text)?.dataAt)).toBe('\n1\t2');
});

test.each([
  ['SELECT 1', undefined],
  ["SELECT 'FORMAT CSV'", undefined],
  ['SELECT (SELECT format FROM t) FORMAT JSON -- x', 'JSON'],
  ['SELECT 1 FORMAT JSON SETTINGS max_threads=1', 'JSON'],
])('format of %j is %j', (text, format) => {
  expect(trailingFormat(text)).toBe(format);
});

test('names are found bare and quoted, not in literals and comments', () => {
  expect(namesIn('SELECT `a`, "b" FROM c WHERE d = \'e\' -- f\n/* g */')).toEqual(
    expect.arrayContaining(['a', 'b', 'c', 'd']),
  );
  expect(namesIn("'e' /* g */ -- f")).toEqual([]);
});
