import avro from 'avsc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { Database } from '../../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { schemaText } from '../../../schemas/avro.ts';
import { closeClients, connect, type GotPill } from '../testing/client.ts';

let namespace: Namespace;
let writer: PillWriter;
let db: Database;
let stream: TestProcess;
let key: string;
let url: string;

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'pro' }));
  stream = await startProcess('gateway/stream/main.js', [], { ...namespace.env, STREAM_PORT: '0' });
  await stream.ready();
  url = /"url":"(ws:[^"]+)"/.exec(stream.output())![1]!;
});

afterAll(async () => {
  closeClients();
  await stream?.stop();
  await writer?.close();
  await db?.destroy();
});

describe('the subprotocol pills.v1.avro', () => {
  test('carries the same pills as text does, live and replayed', async () => {
    const text = await connect(url, { key });
    const binary = await connect(url, { key, protocols: ['pills.v9', 'pills.v1.avro'] });
    expect([text.protocol, binary.protocol]).toEqual(['', 'pills.v1.avro']);
    const clients = [text, binary];
    for (const client of clients) client.send({ op: 'subscribe', id: '1', symbols: ['*'] });
    const [first] = await Promise.all(clients.map((client) => client.until('live')));

    const now = Date.now() * 1000;
    await writer.write([
      makePill({ symbol: '7203.T', market_state: '前場', confidence: 0.1, id: 'é"1' }),
      makePill({ symbol: '7203.T', gross_spread_percent: -1e6 }),
      makePill({ symbol: '7203.T', timestamp: now - 20_000_000, id: 'late' }),
      makePill({ symbol: 'M&M.NS' }),
    ]);
    await waitFor('all', () => clients.every((client) => client.pills().length === 4));
    expect(binary.pills().map(withoutSentAt)).toEqual(text.pills().map(withoutSentAt));
    expect(binary.pills().map(({ late }) => late)).toContain(true);

    const replays = await Promise.all(
      [[], ['pills.v1.avro']].map(async (protocols) => {
        const client = await connect(url, { key, protocols });
        client.send({ op: 'subscribe', id: '1', symbols: ['*'], resume: first!.position });
        await client.until('live');
        return client.pills().map(withoutSentAt);
      }),
    );
    expect(replays[1]).toEqual(replays[0]);
    expect(replays[1]).toHaveLength(4);
  });

  test('is read with nothing but the schema, as its documentation says', async () => {
    const type = avro.Type.forSchema(JSON.parse(schemaText('stream-pills')), { wrapUnions: false });
    const socket = new WebSocket(url, ['pills.v1.avro'], { headers: { 'x-api-key': key } });
    const got: { readonly pills: readonly unknown[] }[] = [];
    let isLive = false;
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) got.push(type.fromBuffer(data.subarray(10)));
      else if (JSON.parse(data.toString()).type === 'live') isLive = true;
      else if (JSON.parse(data.toString()).type === 'welcome') {
        socket.send('{"op":"subscribe","symbols":["ONLY.T"],"snapshot":false}');
      }
    });
    await waitFor('live', () => isLive);
    await writer.write([makePill({ symbol: 'ONLY.T', gross_spread_percent: 0.25 })]);
    await waitFor('the pill', () => got.length > 0);
    socket.terminate();
    expect(got[0]).toMatchObject({ pills: [{ symbol: 'ONLY.T', gross_spread_percent: 0.25 }] });
  });
});

function withoutSentAt(pill: GotPill): object {
  const { sent_at, type, ...rest } = pill as GotPill & { sent_at?: string; type?: string };
  return rest;
}
