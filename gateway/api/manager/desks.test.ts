import { afterAll, beforeAll, expect, test } from 'vitest';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import type { Answer, Customer } from '../testing/customer.ts';

let accounts: AccountApi;
let ada: Customer;
let anyone: Customer;

beforeAll(async () => {
  accounts = await openAccountApi();
  ada = await accounts.customer('ada', 'institutional');
  anyone = accounts.stranger('anyone');
});

afterAll(() => accounts?.close());

/** Sends a request until neither a limit of the network nor a busy database stands in the way. */
function settled(by: Customer, ...request: Parameters<Customer['send']>): Promise<Answer> {
  return waitFor(`${request[0]} ${request[1]}`, async () => {
    const answer = await by.send(...request);
    return (answer.status !== 503 && answer.status !== 429 && answer) || String(answer.status);
  });
}

const at = (name: string) => `/api/manager/desks/${name}`;

async function makeDesk(name: string, limits: object): Promise<Answer> {
  const made = await settled(ada, 'PUT', at(name), limits, { 'if-none-match': '*' });
  expect([made.status, made.body.name]).toEqual([201, name]);
  return made;
}

async function keyOf(desk: string, more: object = {}): Promise<{ key: string; id: string }> {
  const made = await settled(ada, 'POST', '/api/keys', { name: desk, desk, ...more });
  expect([made.status, made.body.record.desk]).toEqual([201, desk]);
  return { key: made.body.key, id: made.body.record.id };
}

/** No pill was ever received, so a call that passes gets 404. */
async function read(key: string, query: string): Promise<Answer> {
  return waitFor('an answer', async () => {
    const answer = await anyone.send('GET', query, undefined, { 'x-api-key': key });
    return answer.status !== 503 && answer;
  });
}
const LATEST = '/api/pills/latest?symbol=7203.T';

test('a desk is created once, and replaced only by those who know its state', async () => {
  const limits = { calls_per_day: 100, rate_per_s: 5 };
  const made = await makeDesk('tokyo', limits);
  expect(made.body).toMatchObject({ ...limits, burst: 10, symbols: null, live_keys: 0 });
  const etag = String(made.headers.etag);
  const put = (body: object, headers: Record<string, string>) =>
    settled(ada, 'PUT', at('tokyo'), body, headers);
  expect((await put(limits, { 'if-none-match': '*' })).status).toBe(412);
  expect((await put(limits, {})).status).toBe(428);
  expect((await put(limits, { 'if-match': '"other"' })).status).toBe(412);
  expect((await put(limits, { 'if-match': `W/${etag}` })).status).toBe(412);
  // The same again changes nothing.
  const same = await put(limits, { 'if-match': etag });
  expect([same.status, same.headers.etag]).toEqual([200, etag]);
  const changed = await put({ calls_per_day: 50 }, { 'if-match': etag });
  expect(changed.body).toMatchObject({ calls_per_day: 50, rate_per_s: null, burst: null });
  expect((await put(limits, { 'if-match': etag })).status).toBe(412);
  expect((await settled(ada, 'GET', at('tokyo'))).headers.etag).toBe(changed.headers.etag);
  const { body } = await settled(ada, 'GET', '/api/account/audit');
  const actions = body.data.map(({ action }: { action: string }) => action);
  expect(actions.filter((action: string) => action.startsWith('desk.'))).toEqual([
    'desk.changed',
    'desk.created',
  ]);
});

test.each([
  ['rate_per_s', { rate_per_s: 501 }],
  ['burst', { rate_per_s: 10, burst: 1_001 }],
  ['burst', { burst: 10 }],
  ['stream_connections', { stream_connections: 1_001 }],
  ['expires_at', { expires_at: '2020-01-01T00:00:00Z' }],
  ['allow_cidrs', { allow_cidrs: ['nonsense'] }],
])('a desk has no more than its account: %s', async (field, limits) => {
  const { status, body } = await settled(ada, 'PUT', at('too-much'), limits);
  expect([status, body.errors[0].pointer]).toEqual([400, `#/${field}`]);
});

test('a key of a desk is held to its calls of a day; another desk is not affected', async () => {
  await makeDesk('small', { calls_per_day: 3 });
  await makeDesk('large', { calls_per_day: 1_000 });
  const [small, large] = [await keyOf('small'), await keyOf('large')];
  const second = await keyOf('small');
  for (const key of [small.key, second.key, small.key])
    expect((await read(key, LATEST)).status).toBe(404);
  const refused = await read(second.key, LATEST);
  expect([refused.status, refused.body]).toEqual([
    429,
    expect.objectContaining({ code: 'daily_quota_exceeded', scope: 'desk', limit: 3 }),
  ]);
  expect((await read(large.key, LATEST)).status).toBe(404);
  const { body } = await settled(ada, 'GET', `${at('small')}/usage?days=2`);
  expect(body.by_day.map(({ calls }: { calls: number }) => calls).at(-1)).toBe(3);
  // A successor stays in the desk.
  const rotated = await settled(ada, 'POST', `/api/keys/${small.id}/rotate`, {});
  expect(rotated.body.record.desk).toBe('small');
  expect((await read(rotated.body.key, LATEST)).status).toBe(429);
});

test('a key of a desk reads only its symbols, on every route', async () => {
  await makeDesk('narrow', { symbols: ['7203.T', '6758.T'] });
  const { key } = await keyOf('narrow', {
    scopes: ['read', 'exports', 'webhooks:write', 'support'],
  });
  expect((await read(key, LATEST)).status).toBe(404);
  for (const path of [
    '/api/pills/latest',
    '/api/pills/latest?symbol=0700.HK',
    '/api/pills/latest?symbols=7203.T,0700.HK',
    '/api/pills?symbols=0700.HK',
    '/api/pills?after=0-1&epoch=k',
    '/api/market/verify?id=some',
    '/api/market/verify?symbol=0700.HK',
    '/api/symbols',
    '/api/analytics/movers',
    '/api/analytics/bars?symbol=7203.T&symbol=0700.HK&interval=1m',
    '/api/analytics/confidence?symbol=*',
    '/api/webhooks',
    '/api/exports',
  ]) {
    const { status, body } = await read(key, path);
    expect([path, status, body.code]).toEqual([path, 403, 'symbol_refused']);
  }
  expect((await read(key, '/api/account')).status).toBe(200);
  const { headers } = await settled(ada, 'GET', at('narrow'));
  await settled(
    ada,
    'PUT',
    at('narrow'),
    { symbols: ['0700.HK'] },
    { 'if-match': String(headers.etag) },
  );
  await waitFor('the change', async () => (await read(key, LATEST)).status === 403);
  expect((await read(key, '/api/pills/latest?symbol=0700.HK')).status).toBe(404);
});

test('the networks of a desk hold for its keys, and a removed desk ends them', async () => {
  await makeDesk('gone', { allow_cidrs: ['192.0.2.0/24'] });
  const { key, id } = await keyOf('gone');
  const outside = await read(key, LATEST);
  expect([outside.status, outside.body.code]).toEqual([403, 'address_refused']);
  expect((await settled(ada, 'DELETE', at('gone'))).status).toBe(204);
  await waitFor('the end of the key', async () => (await read(key, LATEST)).status === 401);
  expect((await settled(ada, 'GET', `/api/keys/${id}`)).body.live).toBe(false);
  expect((await settled(ada, 'DELETE', at('gone'))).status).toBe(404);
  const late = await settled(ada, 'POST', '/api/keys', { name: 'late', desk: 'gone' });
  expect([late.status, late.body.errors[0].pointer]).toEqual([400, '#/desk']);
  // The name is free, and the key of the former desk stays ended.
  await makeDesk('gone', {});
  expect((await read(key, LATEST)).status).toBe(401);
});
