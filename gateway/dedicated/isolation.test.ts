import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { dedicatedUrl } from '../../domain/dedicated/dedicated-url.ts';
import { createDedicatedStreams } from '../../domain/dedicated/streams.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../testing/pills.ts';
import { getPortRange } from '../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { openNarrowRelay } from '../stream/testing/narrow-relay.ts';
import { type Client, closeClients, enter } from '../stream/testing/stream-client.ts';

const SYMBOLS = 20;
const SLOW_READERS = 10;
const QUEUE_BYTES = 1_048_576;
/** A pill takes over 200 bytes in a frame, so these pills are over ten times the queue bound. */
const PILLS = Math.ceil((10 * QUEUE_BYTES) / 200);
const WAIT_MS = 60_000;
const AFTERWARDS = 2_500;
const BATCH = 1_000;

let namespace: Namespace;
let folder: string;
let db: Database;
let writer: PillWriter;
let pro: TestProcess;
let supervisor: TestProcess;

beforeAll(async () => {
  namespace = await createNamespace();
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole dedicated-'));
  db = openTestDatabase(namespace);
  writer = await openPillWriter(namespace);
  pro = await startProcess('gateway/stream/main.js', [], { ...namespace.env, STREAM_PORT: '0' });
  supervisor = await startProcess('gateway/dedicated/main.js', [], {
    ...namespace.env,
    DEDICATED_RUN_FOLDER: folder,
  });
  await Promise.all([pro.ready(), supervisor.ready()]);
});

afterAll(async () => {
  closeClients();
  await Promise.all([pro?.kill(), supervisor?.stop()]);
  await writer?.close();
  await db?.destroy();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

async function subscribe(client: Client): Promise<void> {
  await client.until('welcome');
  client.send({ op: 'subscribe', id: '1', symbols: ['*'], mode: 'all', snapshot: false });
  await client.until('live');
}

/**
 * The reader is awaited after each batch: it shares this process with the writer, and on a busy
 * machine it would fall behind by the bound of a queue, and be closed as slow itself.
 */
async function send(from: number, to: number, reader: Client): Promise<void> {
  for (let at = from; at < to; at += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, to - at) }, (_, i) => at + i);
    const pills = numbers.map((n) => makePill({ id: `p${n}`, symbol: `S${n % SYMBOLS}.T` }));
    // On a busy machine the log may acknowledge late: a repeat has no second effect.
    await waitFor('the log', () => writer.write(pills).then(() => true));
    const sent = at + pills.length;
    await waitFor(
      `pill ${sent}`,
      () =>
        reader.pills().length >= sent || `${reader.pills().length}, ${reader.frames.at(-1)?.type}`,
      WAIT_MS,
    );
  }
}

/** Slow readers that the Pro process has closed. */
async function slowEnded(): Promise<number> {
  const { body } = await request(`${pro.opsUrl}/metrics`);
  const found = /closed_total\{reason="slow_consumer"\} (\d+)/.exec(await body.text());
  return Number(found?.[1] ?? 0);
}

test('slow readers at the Pro process, and its death, do not affect a dedicated socket', async () => {
  const [owner, other] = [
    await createTestAccount(db, namespace, { tier: 'institutional' }),
    await createTestAccount(db, namespace, { tier: 'pro' }),
  ];
  const made = await createDedicatedStreams(db, await getPortRange()).create({
    ...{ accountId: owner.id, label: 'desk', actor: 'system' },
  });
  if (made.kind !== 'ok') throw new Error(made.kind);
  const url = dedicatedUrl('ws://127.0.0.1:{port}', made.stream);
  const client = await enter(url, { key: owner.key });
  await subscribe(client);

  const proUrl = /"url":"(ws:[^"]+)"/.exec(pro.output())![1]!;
  const relay = await openNarrowRelay(proUrl);
  onTestFinished(relay.close);
  for (let i = 0; i < SLOW_READERS; i += 1) {
    await subscribe(await enter(relay.url, { key: other.key }));
  }
  relay.pause();
  await send(0, PILLS, client);
  await waitFor(
    'the end of slow readers',
    async () => (await slowEnded()) === SLOW_READERS,
    WAIT_MS,
  );
  await pro.kill();
  await send(PILLS, PILLS + AFTERWARDS, client);

  const total = PILLS + AFTERWARDS;
  expect(client.pills().length).toBe(total);
  const last = new Map<string, { readonly cursor: string; readonly number: number }>();
  for (const { symbol, cursor, prev, id } of client.pills()) {
    const before = last.get(symbol);
    if (before !== undefined) {
      expect(prev).toBe(before.cursor);
      expect(Number(id.slice(1))).toBe(before.number + SYMBOLS);
    }
    last.set(symbol, { cursor, number: Number(id.slice(1)) });
  }
  expect(last.size).toBe(SYMBOLS);
});
