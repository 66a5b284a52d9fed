import avro from 'avsc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { schemaText } from '../../../schemas/avro.ts';
import { makePill, type PillWriter } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openStreamFixture, type StreamFixture } from '../testing/start-stream.ts';
import { closeClients, connect, type GotPill } from '../testing/stream-client.ts';

let fixture: StreamFixture;
let writer: PillWriter;
let key: string;
let url: string;

beforeAll(async () => {
  fixture = await openStreamFixture('pro');
  ({ writer, url, key } = fixture);
});

afterAll(async () => {
  closeClients();
  await fixture?.close();
});

describe('the subprotocol pills.v1.avro', () => {
  test('carries the same pills as text frames, live and replayed', async () => {
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
    await waitFor('all pills to arrive', () =>
      clients.every((client) => client.pills().length === 4),
    );
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

  test('can be read with the schema alone, as documented', async () => {
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
