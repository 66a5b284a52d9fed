import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageRoot } from '../../lib/files/package-root.ts';
import { readAll } from '../../lib/kafka/read-all.ts';
import { createDecoder } from '../../schemas/avro.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { getPort } from '../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';

const SAMPLE = path.join(packageRoot, 'generator', 'replay', 'eurjpy-sample-quotes.csv');
const READ_MS = 60_000;
const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-replay-'));

let namespace: Namespace;
let ingest: TestProcess;
let url: string;

beforeAll(async () => {
  namespace = await createNamespace();
  const port = await getPort();
  url = `http://127.0.0.1:${port}`;
  ingest = await startProcess('gateway/ingest/main.js', [], {
    ...namespace.env,
    INGEST_PORT: String(port),
  });
  await ingest.ready();
});
afterAll(async () => {
  await ingest?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function replay(...args: string[]): Promise<Answer> {
  const entry = path.join(packageRoot, 'dist', 'generator', 'replay', 'main.js');
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, PILLOLE_NAMESPACE: namespace.name };
    execFile(process.execPath, [entry, ...args], { env }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code ?? -1);
      resolve({ code, stdout, stderr });
    });
  });
}

/** Records of a symbol on the topic, in the order of the log. */
async function pillsOf(symbol: string): Promise<PillRecord[]> {
  const records = await readAll(namespace.client, topicName(namespace.name, 'pills'), READ_MS);
  await namespace.schemas.register('pills');
  const decoder = createDecoder('pill', namespace.schemas.writerSchemas);
  const pills: PillRecord[] = [];
  for (const { key, value } of records) {
    if (key?.toString() !== symbol) continue;
    let decoded = decoder.decode(value);
    if ('pendingSchema' in decoded) {
      await namespace.schemas.load(decoded.pendingSchema);
      decoded = decoder.decode(value);
    }
    if ('ok' in decoded && decoded.ok) pills.push(decoded.value);
  }
  return pills;
}

const lineOf = ({ id }: PillRecord) => Number(/-(\d+)(?:@.*)?$/.exec(id)?.[1]);
const LINES = Array.from({ length: 200 }, (_, row) => row + 2);

it('an unreadable file sends nothing and exits 2', async () => {
  const file = path.join(folder, 'eurusd-bad.csv');
  writeFileSync(file, 'timestamp,bid,ask\n2026-01-05T00:00:00Z,1,2\n2026-01-05T00:00:01Z,x,2\n');
  const answer = await replay(file, '--ingest', url);
  expect(answer).toMatchObject({ code: 2, stdout: '' });
  expect(answer.stderr).toContain('eurusd-bad.csv:3: bid "x" is not a number above 0');
  expect(await pillsOf('EUR/USD')).toEqual([]);
});

it('refused pills are reported with the reason, and the exit code is 1', async () => {
  const answer = await replay(
    SAMPLE,
    '--symbol',
    'REFUSED',
    '--confidence',
    '101',
    '--ingest',
    url,
  );
  expect(answer.code).toBe(1);
  expect(answer.stdout).toMatch(/^sent 200, ok 0, replayed 0, refused 200, unknown 0;/);
  expect(answer.stderr).toMatch(/line 2: .*confidence out_of_range.*199 more/);
  expect(await pillsOf('REFUSED')).toEqual([]);
});

it('an unreachable ingest server ends in exit code 1 and says how to continue', async () => {
  const nowhere = `http://127.0.0.1:${await getPort()}`;
  const answer = await replay(SAMPLE, '--symbol', 'LOST', '--ingest', nowhere, '--tries', '2');
  expect(answer.code).toBe(1);
  expect(answer.stdout).toContain('ok 0, replayed 0, refused 0, unknown 200;');
  expect(answer.stderr).toMatch(/run the same command with --start /);
});

it('a fast replay arrives completely and in order; its repeat has no further effect', async () => {
  const start = nowText();
  const args = [SAMPLE, '--symbol', 'EUR/JPY', '--ingest', url, '--batch', '37', '--start', start];
  const first = await replay(...args);
  expect(first).toMatchObject({ code: 0 });
  expect(first.stdout).toMatch(/^sent 200, ok 200, replayed 0, refused 0, unknown 0;/);
  const second = await replay(...args, '--format', 'json');
  expect(second).toMatchObject({ code: 0 });
  expect(second.stdout).toMatch(/^sent 200, ok 0, replayed 200, refused 0, unknown 0;/);
  const pills = await pillsOf('EUR/JPY');
  expect(pills.map(lineOf)).toEqual(LINES);
  expect(Math.abs(pills[0]!.timestamp / 1000 - Date.parse(start))).toBeLessThan(60_000);
  expect(pills[0]).toMatchObject({ market_state: 'open', kind: null });
  // Line 2: bid 183.409, ask 183.422.
  expect(pills[0]!.gross_spread_percent).toBeCloseTo((0.013 / 183.4155) * 100, 9);
});

it('a replay posted singly with its own times keeps times and order', async () => {
  const args = ['--symbol', 'OWN', '--time', 'own', '--batch', '1', '--ingest', url];
  expect(await replay(SAMPLE, ...args)).toMatchObject({ code: 0 });
  const pills = await pillsOf('OWN');
  expect(pills.map(({ id }) => id)).toEqual(LINES.map((line) => `eurjpy-sample-quotes-${line}`));
  expect(pills[0]!.timestamp).toBe(Date.parse('2026-01-05T00:00:00.123Z') * 1000);
});

it('a paced replay keeps the duration and the distances of the file', async () => {
  // 126 s of quotes at 60 times the pace.
  const started = performance.now();
  const args = ['--symbol', 'PACED', '--pace', '60x', '--ingest', url, '--start', nowText()];
  expect(await replay(SAMPLE, ...args)).toMatchObject({ code: 0 });
  expect(performance.now() - started).toBeGreaterThan(2_000);
  // The same run again has nothing to wait for, and sends nothing new.
  const again = await replay(SAMPLE, ...args);
  expect(again.stdout).toMatch(/^sent 200, ok 0, replayed 200, refused 0, unknown 0;/);
  const pills = await pillsOf('PACED');
  expect(pills.map(lineOf)).toEqual(LINES);
  const span = pills.at(-1)!.timestamp - pills[0]!.timestamp;
  expect(span / 1e6).toBeCloseTo(125.863 / 60, 2);
  for (const { timestamp, received_at } of pills) {
    // No row is sent early.
    expect(received_at! - timestamp).toBeGreaterThan(-5_000);
  }
});

it('a replay directly to Kafka makes the same pills', async () => {
  const engines = ['--kafka', namespace.engines.kafkaBrokers];
  engines.push('--registry', namespace.engines.registryUrl);
  const args = ['--symbol', 'DIRECT', '--time', 'own', '--via', 'kafka', ...engines];
  const answer = await replay(SAMPLE, ...args);
  expect(answer.stderr).not.toContain('Error');
  expect(answer).toMatchObject({ code: 0 });
  const content = ({ symbol: _, received_at: __, source: ___, ...rest }: PillRecord) => rest;
  const direct = await pillsOf('DIRECT');
  expect(direct.map(content)).toEqual((await pillsOf('OWN')).map(content));
  expect(direct[0]).toMatchObject({ received_at: null, source: 'replay' });
});

function nowText(): string {
  return new Date().toISOString();
}
