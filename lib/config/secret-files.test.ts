import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readConfig } from './config.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-secrets-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, content: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
}
const URL = 'postgres://user:hidden@db/pillole';
const good = write('good', `${URL}\n`);
const read = (env: NodeJS.ProcessEnv) =>
  readConfig(env, (reader) => [reader.need('DATABASE_URL'), reader.get('SMTP_URL')]);

describe('a secret', () => {
  test('comes from the file that <NAME>_FILE names, without the end of the line', () => {
    expect(read({ DATABASE_URL_FILE: good })).toEqual([URL, undefined]);
    expect(read({ DATABASE_URL: URL, SMTP_URL_FILE: good })).toEqual([URL, URL]);
  });

  test.each([
    ['an empty file', write('empty', '\n'), 'is empty'],
    ['two lines', write('lines', `${URL}\n${URL}\n`), 'has more than one line'],
    ['a large file', write('large', 'x'.repeat(65_537)), 'is larger than 65536 bytes'],
    ['a missing file', path.join(folder, 'none'), 'cannot be read (ENOENT)'],
    ['a folder', folder, 'cannot be read (EISDIR)'],
  ])('in %s is a fault that does not repeat the content', (_, file, reason) => {
    expect(() => read({ DATABASE_URL_FILE: file })).toThrow(`DATABASE_URL_FILE: ${file} ${reason}`);
    expect(() => read({ DATABASE_URL_FILE: file })).not.toThrow('hidden');
  });

  test('that is set twice is a fault, and all faults are named at once', () => {
    const env = { DATABASE_URL: URL, DATABASE_URL_FILE: good, SMTP_URL_FILE: 'none' };
    expect(() => read(env)).toThrow(
      'DATABASE_URL and DATABASE_URL_FILE are both set; set one of them; SMTP_URL_FILE: none cannot',
    );
  });

  test('only secrets come from files', () => {
    expect(() =>
      readConfig({ KAFKA_BROKERS_FILE: good }, (reader) => reader.need('KAFKA_BROKERS')),
    ).toThrow('KAFKA_BROKERS is not set');
  });
});
