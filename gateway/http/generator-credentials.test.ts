import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { afterAll, describe, expect, test } from 'vitest';
import { checkCredential, parseCredentials } from '../../domain/access/generator-credentials.ts';
import { waitFor } from '../../testing/wait.ts';
import { readIngestConfig } from '../ingest/config.ts';
import { openCredentials } from './generator-credentials.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-credentials-'));
afterAll(() => rmSync(folder, { recursive: true }));

const tokenOf = (letter: string) => `gen_${letter.repeat(40)}`;
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const line = (name: string, token: string, more = {}) =>
  JSON.stringify({ name, sha256: sha256(token), ...more });

describe('file', () => {
  test.each([
    ['lines', `${line('a', tokenOf('a'))}\n\r\n${line('b', tokenOf('b'))}\n`, 2],
    ['an array', `[${line('a', tokenOf('a'))}]`, 1],
    ['one line with an expiry', line('a', tokenOf('a'), { expires_at: '2030-01-01T00:00:00Z' }), 1],
  ])('%s', (_name, text, count) => {
    const parsed = parseCredentials(Buffer.from(text));
    expect(parsed.ok && parsed.credentials.length).toBe(count);
  });

  test.each([
    ['empty', ''],
    ['empty array', '[]'],
    ['not JSON', 'gen_secret'],
    ['a token instead of its hash', JSON.stringify({ name: 'a', sha256: tokenOf('a') })],
    ['unknown field', line('a', tokenOf('a'), { token: tokenOf('a') })],
    ['bad name', line('a b', tokenOf('a'))],
    ['bad expiry', line('a', tokenOf('a'), { expires_at: '2030-01-01' })],
    ['twice', `${line('a', tokenOf('a'))}\n${line('b', tokenOf('a'))}`],
    ['null', '[null]'],
  ])('%s is refused, and the reason repeats none of its content', (_name, text) => {
    const parsed = parseCredentials(Buffer.from(text));
    expect(parsed.ok).toBe(false);
    expect(parsed.ok ? '' : parsed.reason).not.toContain('gen_');
  });
});

test.each([
  ['no header', undefined, 'missing'],
  ['another scheme', 'Basic Z2VuXw==', 'missing'],
  ['too short', 'Bearer gen_short', 'missing'],
  ['no prefix', `Bearer ${'a'.repeat(40)}`, 'missing'],
  ['trailing text', `Bearer ${tokenOf('a')} x`, 'missing'],
  ['unknown', `Bearer ${tokenOf('x')}`, 'invalid'],
  ['expired', `Bearer ${tokenOf('b')}`, 'invalid'],
  ['known', `Bearer ${tokenOf('a')}`, 'known'],
  ['known, scheme in lower case', `bearer ${tokenOf('a')}`, 'known'],
])('%s', (_name, header, kind) => {
  const text = `${line('a', tokenOf('a'))}\n${line('b', tokenOf('b'), { expires_at: '2020-01-01T00:00:00Z' })}`;
  const parsed = parseCredentials(Buffer.from(text));
  if (!parsed.ok) throw new Error(parsed.reason);
  expect(checkCredential(parsed.credentials, header, Date.now() * 1000).kind).toBe(kind);
});

test('a file is reloaded on change; an invalid one leaves the previous credentials in force', async () => {
  const file = path.join(folder, 'rotating');
  writeFileSync(file, line('old', tokenOf('o')));
  const logged: string[] = [];
  const log = pino({}, { write: (text: string) => void logged.push(text) });
  const credentials = openCredentials(file, log);
  const kindOf = (letter: string) => credentials.check(`Bearer ${tokenOf(letter)}`, 0).kind;
  try {
    expect([kindOf('o'), kindOf('n')]).toEqual(['known', 'invalid']);
    writeFileSync(file, `${line('old', tokenOf('o'))}\n${line('new', tokenOf('n'))}`);
    await waitFor('the new credential', () => kindOf('n') === 'known');
    expect(kindOf('o')).toBe('known');
    writeFileSync(file, '{"broken');
    await waitFor('the broken file to be read', () => logged.join().includes('stay in force'));
    expect(logged.join()).not.toContain('gen_');
    expect([kindOf('o'), kindOf('n')]).toEqual(['known', 'known']);
    writeFileSync(file, line('new', tokenOf('n')));
    await waitFor('the old credential to be refused', () => kindOf('o') === 'invalid');
    expect(kindOf('n')).toBe('known');
  } finally {
    credentials.close();
  }
});

test.each([
  ['a missing file', path.join(folder, 'missing')],
  ['an empty file', '/dev/null'],
])('%s ends the start', (_name, file) => {
  const env = { KAFKA_BROKERS: 'x:1', SCHEMA_REGISTRY_URL: 'http://x' };
  const read = () =>
    readIngestConfig({ ...env, INGEST_CREDENTIALS_FILE: file, INGEST_OPEN: 'yes' });
  expect(read).toThrow(/^INGEST_CREDENTIALS_FILE: [^\n]+[^.]\.$/);
});
