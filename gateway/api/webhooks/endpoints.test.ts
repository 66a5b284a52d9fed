import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../../../lib/testing/wait.ts';
import { secretBytes } from '../../../lib/webhooks/secret.ts';
import { type Desk, openDesk, WANTED } from './testing/desk.ts';

let desk: Desk;

beforeAll(async () => {
  desk = await openDesk();
});

afterAll(() => desk?.close());

describe('life of an endpoint', () => {
  test('made, read, changed, disabled, enabled, deleted; each in the audit log', async () => {
    const customer = await desk.customerOf('pro');
    const { endpoint, secret } = await desk.make(customer, {
      ...{ description: 'desk 4', symbols: ['7203.T'], min_confidence: 0.8, max_spread: 2 },
      headers: { Authorization: 'Bearer abc' },
    });
    expect(secretBytes(secret)).toHaveLength(32);
    const to = `/api/webhooks/${endpoint.id}`;
    const read = await customer.send('GET', to);
    expect(read.body).toEqual(endpoint);
    expect(read.body).toMatchObject({
      ...{ status: 'pending', state: 'pending', disabled_reason: null, symbols: ['7203.T'] },
      ...{ header_names: ['Authorization'], min_confidence: 0.8, min_spread: null, max_spread: 2 },
      ...{ rate_per_s: 100, max_age_s: 3_600, backfill: false, states: [] },
    });
    const [sent] = await desk.rowsOf(endpoint.id);
    const kept = await desk.db
      .selectFrom('webhook_endpoints')
      .selectAll()
      .where('id', '=', endpoint.id)
      .executeTakeFirstOrThrow();
    expect(JSON.parse(sent!.body)).toMatchObject({
      type: 'endpoint.test',
      data: { endpoint: endpoint.id, challenge: kept.challenge },
    });
    expect(await desk.isWoken(endpoint.id)).toBe(true);

    const early = await customer.send('PATCH', to, { status: 'disabled' });
    expect([early.status, early.body.code]).toEqual([409, 'state_conflict']);
    await desk.enable(endpoint.id);
    const changed = await customer.send('PATCH', to, {
      ...{ min_confidence: null, max_age_s: 60, event_types: ['quota.warning'] },
      status: 'disabled',
    });
    expect(changed.body).toMatchObject({
      ...{ min_confidence: null, max_age_s: 60, event_types: ['quota.warning'], max_spread: 2 },
      ...{ status: 'disabled', state: 'disabled', disabled_reason: 'owner' },
    });
    const enabled = await customer.send('PATCH', to, { status: 'enabled' });
    expect(enabled.body).toMatchObject({ status: 'enabled', disabled_reason: null });
    expect(await desk.rowsOf(endpoint.id)).toEqual([]);

    const moved = await customer.send('PATCH', to, { url: 'http://localhost:9/other' });
    expect(moved.body).toMatchObject({ status: 'pending', url: 'http://localhost:9/other' });
    const [again] = await desk.rowsOf(endpoint.id);
    expect(JSON.parse(again!.body).data.challenge).not.toBe(kept.challenge);

    expect((await customer.send('DELETE', to)).status).toBe(200);
    expect((await customer.send('GET', to)).status).toBe(404);
    expect((await desk.auditOf(customer)).map(({ action, target }) => [action, target])).toEqual([
      ['webhook.deleted', endpoint.id],
      ...['moved', 'enabled', 'disabled'].map(() => ['webhook.changed', endpoint.id]),
      ['webhook.created', endpoint.id],
    ]);
  });

  test.each(['failing', 'gone'])('one that is %s must answer a new challenge', async (reason) => {
    const customer = await desk.customerOf('pro');
    const { endpoint } = await desk.make(customer);
    await desk.enable(endpoint.id);
    const since = new Date();
    await desk.db
      .updateTable('webhook_endpoints')
      .set({ status: 'disabled', disabled_reason: reason, failing_since: since })
      .where('id', '=', endpoint.id)
      .execute();
    const to = `/api/webhooks/${endpoint.id}`;
    // Disabling it again is no way around the challenge.
    const same = await customer.send('PATCH', to, { status: 'disabled' });
    expect(same.body).toMatchObject({ status: 'disabled', disabled_reason: reason });
    const back = await customer.send('PATCH', to, { status: 'enabled' });
    expect(back.body).toMatchObject({ status: 'pending', failing_since: null });
    expect((await desk.rowsOf(endpoint.id)).map((row) => row.event_type)).toEqual([
      'endpoint.test',
    ]);
  });

  test('the list goes on where the page before ended', async () => {
    const customer = await desk.customerOf('pro');
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) ids.push((await desk.make(customer)).endpoint.id);
    const first = (await customer.send('GET', '/api/webhooks?limit=2')).body;
    expect([first.limit, first.next]).toEqual([5, ids[1]]);
    const second = (await customer.send('GET', `/api/webhooks?limit=2&after=${first.next}`)).body;
    expect(second.next).toBeNull();
    const told = [...first.data, ...second.data].map(({ id }: { id: string }) => id);
    expect(told).toEqual(ids);
  });
});

describe('limits', () => {
  test('of 50 that are made at the same moment Pro has exactly five', async () => {
    const customer = await desk.customerOf('pro');
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => customer.send('POST', '/api/webhooks', WANTED)),
    );
    const made = answers.filter(({ status }) => status === 201);
    expect(made).toHaveLength(5);
    const refused = answers.filter(({ status }) => status !== 201);
    expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(['webhook_limit']));
    expect(refused[0]!.body).toMatchObject({ status: 409, limit: 5 });
    expect((await customer.send('GET', '/api/webhooks')).body.data).toHaveLength(5);
  });

  test('60 are made within an hour, also when they are deleted meanwhile', async () => {
    const customer = await desk.customerOf('institutional');
    const { id: accountId } = (await customer.send('GET', '/api/account')).body;
    const before = { account_id: accountId, actor: 'system', action: 'webhook.created' };
    const rows = Array.from({ length: 59 }, () => ({
      ...before,
      target: null,
      address: null,
      detail: '{}',
    }));
    await desk.db.insertInto('audit_log').values(rows).execute();
    await desk.make(customer);
    const refused = await customer.send('POST', '/api/webhooks', WANTED);
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_attempts']);
    expect(refused.body.retry_after_s).toBeGreaterThan(3_000);
  });

  test('ten tests a minute are sent, those after a change of the URL among them', async () => {
    const customer = await desk.customerOf('pro');
    const to = `/api/webhooks/${(await desk.make(customer)).endpoint.id}`;
    for (let n = 0; n < 9; n += 1) {
      const sent = await customer.send('POST', `${to}/test`);
      expect([sent.status, sent.body.message_id]).toEqual([202, expect.stringMatching(/^msg_/)]);
    }
    expect((await customer.send('PATCH', to, { url: 'http://127.0.0.1:9/b' })).status).toBe(200);
    const moved = await customer.send('PATCH', to, { url: 'http://127.0.0.1:9/c' });
    expect([moved.status, moved.body.code]).toEqual([429, 'too_many_attempts']);
    expect((await customer.send('POST', `${to}/test`)).status).toBe(429);
    expect((await customer.send('GET', to)).body.url).toBe('http://127.0.0.1:9/b');
  });

  test('after a downgrade the newest are over the limit; Basic keeps looking and deleting', async () => {
    const customer = await desk.customerOf('institutional');
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) ids.push((await desk.make(customer)).endpoint.id);
    for (const id of ids) await desk.enable(id);
    const { id: accountId } = (await customer.send('GET', '/api/account')).body;
    const downgrade = async (tier: 'pro' | 'basic') => {
      await desk.db
        .updateTable('subscriptions')
        .set({ tier })
        .where('account_id', '=', accountId)
        .execute();
      await waitFor('the tier', async () => {
        return (await customer.send('GET', '/api/account')).body.tier === tier;
      });
    };
    await downgrade('pro');
    const states = async () =>
      (await customer.send('GET', '/api/webhooks')).body.data.map(
        ({ state }: { state: string }) => state,
      );
    expect(await states()).toEqual([...Array(5).fill('enabled'), 'over_limit', 'over_limit']);
    const over = await customer.send('POST', `/api/webhooks/${ids[6]}/test`);
    expect([over.status, over.body.state]).toEqual([409, 'over_limit']);
    await downgrade('basic');
    expect(await states()).toEqual(Array(7).fill('not_entitled'));
    expect((await customer.send('GET', '/api/webhooks')).body.limit).toBe(0);
    for (const [method, to, body] of [
      ['POST', '/api/webhooks', WANTED],
      ['PATCH', `/api/webhooks/${ids[0]}`, { description: 'x' }],
      ['POST', `/api/webhooks/${ids[0]}/test`, undefined],
    ] as const) {
      expect((await customer.send(method, to, body)).body.code).toBe('tier_too_low');
    }
    expect((await customer.send('DELETE', `/api/webhooks/${ids[0]}`)).status).toBe(200);
  });
});

test('a key reads and has messages sent, but changes no endpoint', async () => {
  const customer = await desk.customerOf('pro');
  const to = `/api/webhooks/${(await desk.make(customer)).endpoint.id}`;
  const { key } = (await customer.send('POST', '/api/keys', { name: 'x', scopes: ['read'] })).body;
  const program = desk.stranger('program');
  const send = (method: string, path: string, body?: object) =>
    program.send(method, path, body, { 'x-api-key': key });
  expect((await send('GET', to)).status).toBe(200);
  expect((await send('POST', `${to}/test`)).status).toBe(202);
  expect((await send('GET', `${to}/deliveries`)).body.data).toHaveLength(1);
  for (const [method, path, body] of [
    ['POST', '/api/webhooks', WANTED],
    ['PATCH', to, { description: 'x' }],
    ['DELETE', to, undefined],
    ['POST', `${to}/rotate-secret`, {}],
  ] as const) {
    const refused = await send(method, path, body);
    expect([refused.status, refused.body.code]).toEqual([401, 'session_required']);
  }
});
