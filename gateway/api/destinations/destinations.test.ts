import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../../testing/accounts.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import type { Customer } from '../testing/customer.ts';

const SECRET = 'secret-that-no-answer-may-have';
let accounts: AccountApi;
let db: ReturnType<typeof openTestDatabase>;
let ines: Customer;
let pro: Customer;

beforeAll(async () => {
  accounts = await openAccountApi({ WEBHOOK_ALLOW_LOOPBACK: 'true', LOG_LEVEL: 'debug' });
  db = openTestDatabase(accounts.namespace);
  [ines, pro] = await Promise.all([
    accounts.customer('ines', 'institutional'),
    accounts.customer('pia', 'pro'),
  ]);
});
afterAll(async () => {
  await accounts?.close();
  await db?.destroy();
});

const BODY = {
  name: 'lake',
  settings: {
    ...{ endpoint: 'http://127.0.0.1:9', region: 'ap-northeast-1', bucket: 'example-pills' },
    ...{ prefix: 'market/', addressing: 'path', format: 'parquet', window_s: 60 },
  },
  secrets: { access_key_id: 'AKIDEXAMPLE', secret_access_key: SECRET },
  symbols: ['7203.T'],
  min_confidence: 80,
};

const create = async (more: object = {}) => {
  const made = await ines.send('POST', '/api/destinations/s3', { ...BODY, ...more });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  return made.body;
};
const remove = (id: string) => ines.send('DELETE', `/api/destinations/${id}`);

test('a destination is created, read, changed, paused, resumed and removed, each with an audit entry', async () => {
  const made = await create();
  expect(made).toMatchObject({
    ...{ name: 'lake', type: 's3', settings: BODY.settings, symbols: ['7203.T'] },
    ...{ min_confidence: 80, max_spread: null, state: 'active', credential_version: 1 },
    lag_records: 0,
  });
  const at = `/api/destinations/${made.id}`;
  expect((await ines.send('GET', at)).body).toEqual(made);
  const to = `/api/destinations/s3/${made.id}`;
  const changed = await ines.send('PATCH', to, {
    settings: { bucket: 'other-pills' },
    min_confidence: null,
    secrets: { access_key_id: 'AKIDOTHER', secret_access_key: SECRET },
  });
  expect(changed.body).toMatchObject({
    settings: { ...BODY.settings, bucket: 'other-pills' },
    ...{ min_confidence: null, symbols: ['7203.T'], credential_version: 2 },
  });
  expect((await ines.send('POST', `${at}/pause`)).body.state).toBe('paused');
  expect((await ines.send('POST', `${at}/resume`)).body.state).toBe('active');
  expect((await remove(made.id)).status).toBe(204);
  expect((await ines.send('GET', at)).status).toBe(404);
  const entries = await db
    .selectFrom('audit_log')
    .select(['action', 'actor', 'detail'])
    .where('target', '=', made.id)
    .orderBy('id')
    .execute();
  expect(entries.map(({ action }) => action)).toEqual(
    ['created', 'changed', 'paused', 'resumed', 'removed'].map((verb) => `destination.${verb}`),
  );
  expect(entries.every(({ actor }) => actor.startsWith('user:'))).toBe(true);
  const positions = await db.selectFrom('destination_positions').selectAll().execute();
  expect(positions.filter((row) => row.destination_id === made.id)).toEqual([]);
  const shown = JSON.stringify([made, changed.body, entries]) + accounts.api.output();
  for (const secret of [SECRET, 'AKIDEXAMPLE', 'AKIDOTHER']) expect(shown).not.toContain(secret);
});

test('the credentials in the database are sealed', async () => {
  const { id } = await create();
  const row = await db
    .selectFrom('destinations')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  expect(row.sealed.toString('latin1')).not.toContain(SECRET);
  expect(JSON.stringify({ ...row, sealed: null })).not.toContain(SECRET);
  await remove(id);
});

test.each<[string, object, string]>([
  [
    'a private address',
    { settings: { ...BODY.settings, endpoint: 'https://10.0.0.1' } },
    '#/settings/endpoint',
  ],
  [
    'a bucket that is a path',
    { settings: { ...BODY.settings, bucket: '../etc' } },
    '#/settings/bucket',
  ],
  [
    'a prefix that leaves the bucket',
    { settings: { ...BODY.settings, prefix: '../' } },
    '#/settings/prefix',
  ],
  ['an unknown setting', { settings: { ...BODY.settings, role: 'x' } }, '#/settings/role'],
  ['a missing credential', { secrets: { access_key_id: 'x' } }, '#/secrets/secret_access_key'],
  ['a symbol that is none', { symbols: ['not a symbol'] }, '#/symbols/0'],
  ['a range that is backwards', { min_spread: 1, max_spread: 0 }, '#/max_spread'],
])('%s is refused', async (_what, more, pointer) => {
  const { status, body } = await ines.send('POST', '/api/destinations/s3', { ...BODY, ...more });
  expect([status, body.code]).toEqual([400, 'body_invalid']);
  expect(body.errors.map((fault: { pointer: string }) => fault.pointer)).toContain(pointer);
});

test('the format never changes, and another endpoint needs the credentials again', async () => {
  const { id } = await create();
  const to = `/api/destinations/s3/${id}`;
  const format = await ines.send('PATCH', to, { settings: { format: 'ndjson' } });
  expect(format.body.errors).toMatchObject([{ pointer: '#/settings/format' }]);
  const moved = { settings: { endpoint: 'http://127.0.0.1:10' } };
  const without = await ines.send('PATCH', to, moved);
  expect(without.body.errors).toMatchObject([{ pointer: '#/secrets', code: 'missing_field' }]);
  const { secrets } = BODY;
  expect((await ines.send('PATCH', to, { ...moved, secrets })).status).toBe(200);
  await remove(id);
});

test('a test send says why it failed, and never repeats credentials', async () => {
  const { id } = await create();
  const { status, body } = await ines.send('POST', `/api/destinations/${id}/test`);
  expect([status, body.ok, body.reason]).toEqual([200, false, 'connect']);
  expect(JSON.stringify(body)).not.toContain(SECRET);
  await remove(id);
});

test('attempts are listed newest first, by outcome, status and time, page by page', async () => {
  const { id } = await create();
  const row = { destination_id: id, attempts: 1, pills: 5, bytes: 9, latency_ms: 3 };
  const times = ['2026-11-20T01:00:00Z', '2026-11-20T02:00:00Z', '2026-11-20T03:00:00Z'];
  for (const [n, at] of times.entries()) {
    const of =
      n === 1 ? { outcome: 'delivered' as const } : { outcome: 'failed' as const, status: 503 };
    await db
      .insertInto('destination_attempts')
      .values({ ...row, ...of, at: new Date(at) })
      .execute();
  }
  const ask = async (query: string) => {
    const { body } = await ines.send('GET', `/api/destinations/${id}/attempts${query}`);
    return body.data.map(({ at }: { at: string }) => at.slice(11, 13));
  };
  expect(await ask('')).toEqual(['03', '02', '01']);
  expect(await ask('?outcome=failed')).toEqual(['03', '01']);
  expect(await ask('?upstream_status=503&to=2026-11-20T02:30:00Z')).toEqual(['01']);
  expect(await ask('?from=2026-11-20T02:00:00Z')).toEqual(['03', '02']);
  const first = await ines.send('GET', `/api/destinations/${id}/attempts?limit=2`);
  const rest = await ines.send('GET', first.body.next);
  expect(rest.body.data).toHaveLength(1);
  expect(rest.body.next).toBeNull();
  await remove(id);
});

test('types are listed with the schemas of their settings, from which a form is made', async () => {
  const { body } = await ines.send('GET', '/api/destinations/types');
  const [type] = body.data;
  expect(type).toMatchObject({ name: 's3', fixed: ['format', 'window_s'] });
  expect(Object.keys(type.settings.properties)).toEqual(Object.keys(BODY.settings));
  expect(type.instructions).toContain('s3:PutObject');
});

test('another tier can create none, and an account has at most ten', async () => {
  const refused = await pro.send('POST', '/api/destinations/s3', BODY);
  expect([refused.status, refused.body.code]).toEqual([403, 'tier_too_low']);
  const made = [];
  for (let n = 0; n < 10; n += 1) made.push(await create({ name: `lake ${n}` }));
  const more = await ines.send('POST', '/api/destinations/s3', BODY);
  expect([more.status, more.body.code, more.body.limit]).toEqual([409, 'destination_limit', 10]);
  for (const { id } of made) await remove(id);
});

test('after the end of the tier a destination can be read and removed; resumed, it starts at that moment', async () => {
  const { id } = await create({ start: 'earliest' });
  await db
    .updateTable('destinations')
    .set({ paused_by: 'entitlement' })
    .where('id', '=', id)
    .execute();
  await db
    .updateTable('destination_positions')
    .set({ next_offset: 77 })
    .where('destination_id', '=', id)
    .execute();
  expect((await ines.send('GET', `/api/destinations/${id}`)).body.state).toBe('ended');
  const resumed = await ines.send('POST', `/api/destinations/${id}/resume`);
  expect(resumed.body.state).toBe('active');
  const rows = await db
    .selectFrom('destination_positions')
    .select('next_offset')
    .where('destination_id', '=', id)
    .execute();
  expect(rows.map((row) => row.next_offset)).toEqual(['0', '0', '0']);
  await waitFor('the removal', async () => (await remove(id)).status === 204);
});
