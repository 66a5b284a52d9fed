import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readPepper } from '../../../domain/access/pepper.ts';
import { createSeal } from '../../../domain/access/sealing.ts';
import { createEndpoints } from '../../../domain/webhooks/endpoints/endpoint-operations.ts';
import { SETTING_DEFAULTS } from '../../../domain/webhooks/endpoints/endpoint-settings.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { makePill } from '../../../testing/pills.ts';
import { openPlatform, type Platform } from '../testing/api-platform.ts';

const PILLS = 130;
let platform: Platform;
/** Address of the first API; the platform itself only sends GET requests to it. */
let base: string;
let firstAt: number;
let cursors: string[];
let id: string;

beforeAll(async () => {
  platform = await openPlatform();
  base = await platform.startApi({});
  const pills = Array.from({ length: PILLS }, (_, n) =>
    makePill({ symbol: n % 2 === 0 ? '7203.T' : '9984.T', confidence: n % 10 === 0 ? 10 : 90 }),
  );
  firstAt = Math.min(...pills.map(({ timestamp }) => timestamp));
  const acks = await platform.write([...pills, makePill({ symbol: 'TEST:A' })]);
  cursors = acks.map(({ partition, offset }) => formatCursor(partition, offset));
  await platform.waitUntilStored();
});

afterAll(() => platform?.close());

beforeEach(async () => {
  id = await enabledEndpoint({});
});

async function enabledEndpoint(settings: object): Promise<string> {
  const { db, account, namespace } = platform;
  const seal = createSeal(readPepper(namespace.env.KEY_PEPPER_FILE!));
  const endpoints = createEndpoints({ db, seal, checkUrl: async () => undefined });
  const made = await endpoints.create({
    accountId: account.id,
    actor: 'system',
    settings: {
      ...SETTING_DEFAULTS,
      url: 'https://example.com/',
      eventTypes: ['pill.published'],
      ...settings,
    },
  });
  if (made.kind !== 'ok') throw new Error(made.kind);
  await db
    .updateTable('webhook_endpoints')
    .set({ status: 'enabled' })
    .where('id', '=', made.endpoint.id)
    .execute();
  await db.deleteFrom('webhook_deliveries').where('endpoint_id', '=', made.endpoint.id).execute();
  return made.endpoint.id;
}

async function replay(body: object) {
  const answer = await request(`${base}/api/webhooks/${id}/replay`, {
    method: 'POST',
    headers: { 'x-api-key': platform.account.key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members
  return { status: answer.statusCode, body: (await answer.body.json()) as any };
}

async function messages() {
  const rows = await platform.db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('endpoint_id', '=', id)
    .orderBy('id')
    .execute();
  return rows.map((row) => ({ ...row, json: JSON.parse(row.body) }));
}

const pillsOf = (rows: Awaited<ReturnType<typeof messages>>) =>
  rows.flatMap(({ json }) => json.data.pills as { cursor: string; symbol: string }[]);

test('a range of the log becomes messages of up to 50 pills, once however often it is requested', async () => {
  const ask = { epoch: platform.namespace.settings.epoch, until: platform.end() };
  const dry = await replay({ ...ask, dry_run: true });
  expect(dry.status).toBe(200);
  expect(dry.body).toMatchObject({ messages: 3, queued_messages: 0, pills: PILLS });
  expect(await messages()).toEqual([]);
  const first = await replay(ask);
  expect(first.status).toBe(202);
  expect(first.body).toEqual({
    messages: 3,
    queued_messages: 3,
    pills: PILLS,
    position: platform.end(),
    next: null,
  });
  const rows = await messages();
  expect(rows.map(({ pills }) => pills)).toEqual([50, 50, 30]);
  expect(rows.every(({ json }) => json.data.replayed === true)).toBe(true);
  expect(new Set(rows.map(({ json }) => json.type))).toEqual(new Set(['pills.published']));
  const listed = pillsOf(rows);
  // All pills but those of the test symbol, which the endpoint does not name.
  expect(listed.map(({ cursor }) => cursor).sort()).toEqual(cursors.slice(0, PILLS).sort());
  const { data } = (await platform.ask(`/api/pills?symbol=7203.T&epoch=${ask.epoch}&limit=1`)).body;
  expect(listed.find(({ cursor }) => cursor === data[0].cursor)).toEqual({
    epoch: ask.epoch,
    ...data[0],
  });
  const again = await replay(ask);
  expect(again.body).toMatchObject({ queued_messages: 0, pills: PILLS });
  expect(await messages()).toHaveLength(3);
});

test('the filters of the endpoint apply, and its only symbol is implied', async () => {
  id = await enabledEndpoint({ symbols: ['7203.T'], minConfidence: 50 });
  const from = formatTimestamp(firstAt);
  const { body } = await replay({ from });
  expect(body).toMatchObject({ queued_messages: 2, pills: 52, position: null, next: null });
  expect(new Set(pillsOf(await messages()).map(({ symbol }) => symbol))).toEqual(
    new Set(['7203.T']),
  );
});

test('a test symbol reaches only an endpoint that names it', async () => {
  id = await enabledEndpoint({ symbols: ['TEST:A'] });
  const { body } = await replay({ epoch: platform.namespace.settings.epoch });
  expect(body).toMatchObject({ queued_messages: 1, pills: 1 });
});

test.each([
  [{}, '#/from'],
  [{ from: 'yesterday', symbol: '7203.T' }, '#/from'],
  [{ from: '2026-11-20T00:00:00Z' }, '#/symbol'],
  [{ after: 'nonsense' }, '#/after'],
  [{ after: '0-1' }, '#/epoch'],
  [{ epoch: 'k7f3', page: 'forged' }, '#/page'],
  [{ surplus: 1 }, '#/surplus'],
])('%j is refused at %s', async (body, pointer) => {
  const answer = await replay(body);
  expect([answer.status, answer.body.code]).toEqual([400, 'body_invalid']);
  expect(answer.body.errors[0].pointer).toBe(pointer);
});

test('a position of another log is refused', async () => {
  const answer = await replay({ epoch: 'nobodys' });
  expect(answer.body.code).toBe('position_unknown');
});
