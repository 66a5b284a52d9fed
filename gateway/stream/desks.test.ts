import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { newId } from '../../domain/access/id.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase, type TestAccount } from '../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { startStream } from './testing/start-stream.ts';
import { closeClients, connect } from './testing/stream-client.ts';

let namespace: Namespace;
let db: Database;
let streams: { stream: TestProcess; url: string }[];

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  streams = await Promise.all([startStream(namespace.env), startStream(namespace.env)]);
});

afterEach(closeClients);

afterAll(async () => {
  await Promise.all((streams ?? []).map(({ stream }) => stream.stop()));
  await db?.destroy();
});

/** An account whose key belongs to a desk. */
async function deskWith(limits: {
  readonly connections_max?: number;
  readonly symbols?: string[];
}): Promise<TestAccount & { readonly desk: string }> {
  const account = await createTestAccount(db, namespace, { tier: 'institutional' });
  const desk = newId('dsk');
  const row = { id: desk, account_id: account.id, name: 'tokyo', created_by: 'test', ...limits };
  await db.insertInto('desks').values(row).execute();
  await db.updateTable('api_keys').set({ desk_id: desk }).where('id', '=', account.keyId).execute();
  return { ...account, desk };
}

test('a connection of a desk gets only its symbols, and ends when one is taken away', async () => {
  const { key, desk } = await deskWith({ symbols: ['7203.T', '6758.T'] });
  const client = await connect(streams[0]!.url, { key });
  await client.until('welcome');
  for (const [symbols, accepted, refused] of [
    [['*'], [], ['*']],
    [['7203.T', '0700.HK'], ['7203.T'], ['0700.HK']],
  ]) {
    client.send({ op: 'subscribe', symbols });
    const rejected = refused!.map((symbol) => ({ symbol, code: 'symbol_refused' }));
    expect(await client.until('subscribed')).toMatchObject({ accepted, rejected });
  }
  const change = db.updateTable('desks').set({ symbols: ['6758.T'] });
  await change.where('id', '=', desk).execute();
  expect(await client.until('error')).toMatchObject({ code: 'symbols_changed', close: 4004 });
});

test('a desk at its limit of connections does not touch its account', async () => {
  const { key, desk } = await deskWith({ connections_max: 1 });
  const first = await connect(streams[0]!.url, { key });
  expect(await first.until('welcome')).toMatchObject({ limits: { connections: 1 } });
  const second = await connect(streams[0]!.url, { key });
  expect(await second.until('error')).toMatchObject({ code: 'connection_limit', limit: 1 });
  // Over all processes the newest is closed, and the oldest stays.
  const third = await connect(streams[1]!.url, { key });
  expect(await third.until('error')).toMatchObject({ code: 'connection_limit', close: 4508 });
  first.send({ op: 'ping', id: 'still' });
  expect(await first.until('pong')).toMatchObject({ id: 'still' });
  // The limit was that of the desk, not of the account.
  const freed = db.updateTable('desks').set({ connections_max: null }).where('id', '=', desk);
  await freed.execute();
  await waitFor('room for another connection', async () => {
    const { frames } = await connect(streams[1]!.url, { key });
    await waitFor('a frame', () => frames.length > 0);
    return frames[0]?.type === 'welcome';
  });
});
