import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { secretBytes } from '../../../domain/webhooks/secrets/secret.ts';
import { waitFor } from '../../../testing/wait.ts';
import type { Customer } from '../testing/customer.ts';
import { ENDPOINT_SETTINGS, openWebhookApi, type WebhookApi } from './testing/webhook-api.ts';

let fixture: WebhookApi;

beforeAll(async () => {
  fixture = await openWebhookApi();
});

afterAll(() => fixture?.close());

describe('lifecycle of an endpoint', () => {
  test('created, read, changed, disabled, enabled, deleted, with each step in the audit log', async () => {
    const customer = await fixture.customerOf('pro');
    const { endpoint, secret } = await fixture.createEndpoint(customer, {
      description: 'desk 4',
      symbols: ['7203.T'],
      min_confidence: 0.8,
      max_spread: 2,
      headers: { Authorization: 'Bearer abc' },
    });
    expect(secretBytes(secret)).toHaveLength(32);
    const to = `/api/webhooks/${endpoint.id}`;
    const read = await customer.send('GET', to);
    expect(read.body).toEqual(endpoint);
    expect(read.body).toMatchObject({
      status: 'pending',
      state: 'pending',
      disabled_reason: null,
      symbols: ['7203.T'],
      header_names: ['Authorization'],
      min_confidence: 0.8,
      min_spread: null,
      max_spread: 2,
      rate_per_s: 100,
      max_age_s: 3_600,
      backfill: false,
      states: [],
    });
    const [sent] = await fixture.rowsOf(endpoint.id);
    const kept = await fixture.db
      .selectFrom('webhook_endpoints')
      .selectAll()
      .where('id', '=', endpoint.id)
      .executeTakeFirstOrThrow();
    expect(JSON.parse(sent!.body)).toMatchObject({
      type: 'endpoint.test',
      data: { endpoint: endpoint.id, challenge: kept.challenge },
    });
    expect(await fixture.isDrainQueued(endpoint.id)).toBe(true);

    const early = await customer.send('PATCH', to, { status: 'disabled' });
    expect([early.status, early.body.code]).toEqual([409, 'state_conflict']);
    await fixture.enable(endpoint.id);
    const changed = await customer.send('PATCH', to, {
      min_confidence: null,
      max_age_s: 60,
      event_types: ['quota.warning'],
      status: 'disabled',
    });
    expect(changed.body).toMatchObject({
      min_confidence: null,
      max_age_s: 60,
      event_types: ['quota.warning'],
      max_spread: 2,
      status: 'disabled',
      state: 'disabled',
      disabled_reason: 'owner',
    });
    const enabled = await customer.send('PATCH', to, { status: 'enabled' });
    expect(enabled.body).toMatchObject({ status: 'enabled', disabled_reason: null });
    expect(await fixture.rowsOf(endpoint.id)).toEqual([]);

    const moved = await customer.send('PATCH', to, { url: 'http://localhost:9/other' });
    expect(moved.body).toMatchObject({ status: 'pending', url: 'http://localhost:9/other' });
    const [again] = await fixture.rowsOf(endpoint.id);
    expect(JSON.parse(again!.body).data.challenge).not.toBe(kept.challenge);

    expect((await customer.send('DELETE', to)).status).toBe(200);
    expect((await customer.send('GET', to)).status).toBe(404);
    expect((await fixture.auditOf(customer)).map(({ action, target }) => [action, target])).toEqual(
      [
        ['webhook.deleted', endpoint.id],
        ...['moved', 'enabled', 'disabled'].map(() => ['webhook.changed', endpoint.id]),
        ['webhook.created', endpoint.id],
      ],
    );
  });

  test.each(['failing', 'gone'])(
    'an endpoint disabled as %s must answer a new challenge',
    async (reason) => {
      const customer = await fixture.customerOf('pro');
      const { endpoint } = await fixture.createEndpoint(customer);
      await fixture.enable(endpoint.id);
      const since = new Date();
      await fixture.db
        .updateTable('webhook_endpoints')
        .set({ status: 'disabled', disabled_reason: reason, failing_since: since })
        .where('id', '=', endpoint.id)
        .execute();
      const to = `/api/webhooks/${endpoint.id}`;
      // Disabling the endpoint again does not bypass the challenge.
      const same = await customer.send('PATCH', to, { status: 'disabled' });
      expect(same.body).toMatchObject({ status: 'disabled', disabled_reason: reason });
      const back = await customer.send('PATCH', to, { status: 'enabled' });
      expect(back.body).toMatchObject({ status: 'pending', failing_since: null });
      expect((await fixture.rowsOf(endpoint.id)).map((row) => row.event_type)).toEqual([
        'endpoint.test',
      ]);
    },
  );

  test('a page of the list continues where the previous page ended', async () => {
    const customer = await fixture.customerOf('pro');
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) ids.push((await fixture.createEndpoint(customer)).endpoint.id);
    const first = (await customer.send('GET', '/api/webhooks?limit=2')).body;
    expect([first.limit, first.next]).toEqual([5, `/api/webhooks?limit=2&after=${ids[1]}`]);
    const second = (await customer.send('GET', first.next)).body;
    expect(second.next).toBeNull();
    const listed = [...first.data, ...second.data].map(({ id }: { id: string }) => id);
    expect(listed).toEqual(ids);
  });
});

describe('limits', () => {
  test('of 50 endpoints created simultaneously, Pro gets exactly five', async () => {
    const customer = await fixture.customerOf('pro');
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => customer.send('POST', '/api/webhooks', ENDPOINT_SETTINGS)),
    );
    const made = answers.filter(({ status }) => status === 201);
    expect(made).toHaveLength(5);
    const refused = answers.filter(({ status }) => status !== 201);
    expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(['webhook_limit']));
    expect(refused[0]!.body).toMatchObject({ status: 409, limit: 5 });
    expect((await customer.send('GET', '/api/webhooks')).body.data).toHaveLength(5);
  });

  test('60 endpoints can be created within an hour, even if some are deleted', async () => {
    const customer = await fixture.customerOf('institutional');
    const { id: accountId } = (await customer.send('GET', '/api/account')).body;
    const before = { account_id: accountId, actor: 'system', action: 'webhook.created' };
    const rows = Array.from({ length: 59 }, () => ({
      ...before,
      target: null,
      address: null,
      detail: '{}',
    }));
    await fixture.db.insertInto('audit_log').values(rows).execute();
    await fixture.createEndpoint(customer);
    const refused = await customer.send('POST', '/api/webhooks', ENDPOINT_SETTINGS);
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_attempts']);
    expect(refused.body.retry_after_s).toBeGreaterThan(3_000);
  });

  test('ten test messages a minute are sent, including those after a change of the URL', async () => {
    const customer = await fixture.customerOf('pro');
    const to = `/api/webhooks/${(await fixture.createEndpoint(customer)).endpoint.id}`;
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

  test('after a downgrade the newest endpoints are over the limit; Basic can still read and delete', async () => {
    const customer = await fixture.customerOf('institutional');
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) ids.push((await fixture.createEndpoint(customer)).endpoint.id);
    for (const id of ids) await fixture.enable(id);
    const { id: accountId } = (await customer.send('GET', '/api/account')).body;
    const downgrade = async (tier: 'pro' | 'basic') => {
      await fixture.db
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
      ['POST', '/api/webhooks', ENDPOINT_SETTINGS],
      ['PATCH', `/api/webhooks/${ids[0]}`, { description: 'x' }],
      ['POST', `/api/webhooks/${ids[0]}/test`, undefined],
    ] as const) {
      expect((await customer.send(method, to, body)).body.code).toBe('tier_too_low');
    }
    expect((await customer.send('DELETE', `/api/webhooks/${ids[0]}`)).status).toBe(200);
  });
});

describe('keys', () => {
  /** A program of the customer with a key of its own. */
  async function programOf(customer: Customer, scopes: readonly string[]) {
    const { key } = (await customer.send('POST', '/api/keys', { name: 'x', scopes })).body;
    const program = fixture.stranger('program');
    return (method: string, path: string, body?: object) =>
      program.send(method, path, body, { 'x-api-key': key });
  }

  test('with webhooks:write, infrastructure as code: create, read, change, test, delete', async () => {
    const customer = await fixture.customerOf('pro');
    const send = await programOf(customer, ['webhooks:write']);
    const made = await send('POST', '/api/webhooks', ENDPOINT_SETTINGS);
    expect(made.status).toBe(201);
    expect(secretBytes(made.body.secret)).toHaveLength(32);
    expect(made.headers['cache-control']).toBe('no-store');
    const to = `/api/webhooks/${made.body.endpoint.id}`;
    expect((await send('GET', to)).body).toEqual(made.body.endpoint);
    expect(made.body.endpoint).toMatchObject({ url: ENDPOINT_SETTINGS.url, url_redacted: false });
    expect((await send('PATCH', to, { description: 'as code' })).body.description).toBe('as code');
    expect((await send('POST', `${to}/test`)).status).toBe(202);
    const rotated = await send('POST', `${to}/rotate-secret`, {});
    expect([rotated.status, rotated.body.code]).toEqual([401, 'session_required']);
    expect((await send('DELETE', to)).status).toBe(200);
    const actors = (await fixture.auditOf(customer)).map(({ actor }) => actor);
    expect(new Set(actors)).toEqual(new Set([expect.stringMatching(/^key:key_/)]));
  });

  test.each(['read', 'webhooks:read'])(
    'with %s: endpoints without the credentials of their URLs, and no change',
    async (scope) => {
      const customer = await fixture.customerOf('pro');
      const url = 'http://127.0.0.1:9/T0/abcdefghijklmnopqrst/hook?token=in-the-url';
      const shown = 'http://127.0.0.1:9/T0/***/hook?***';
      const to = `/api/webhooks/${(await fixture.createEndpoint(customer, { url })).endpoint.id}`;
      const send = await programOf(customer, [scope]);
      const read = await send('GET', to);
      expect(read.body).toMatchObject({ url: shown, url_redacted: true });
      expect((await send('GET', '/api/webhooks')).body.data).toEqual([read.body]);
      expect((await send('GET', `${to}/deliveries`)).body.data).toHaveLength(1);
      expect((await customer.send('GET', to)).body).toMatchObject({ url, url_redacted: false });
      const refused = await send('POST', `${to}/test`);
      expect([refused.status, refused.body]).toMatchObject([
        403,
        { code: 'scope_missing', needs: 'webhooks:write', has: [scope] },
      ]);
    },
  );

  test('cannot have stored headers sent to another origin', async () => {
    const customer = await fixture.customerOf('pro');
    const headers = { Authorization: 'Bearer of-the-receiver' };
    const made = await fixture.createEndpoint(customer, { headers });
    const to = `/api/webhooks/${made.endpoint.id}`;
    const send = await programOf(customer, ['webhooks:write']);
    const url = 'http://127.0.0.1:10/';
    const refused = await send('PATCH', to, { url });
    expect([refused.status, refused.body.errors]).toMatchObject([
      400,
      [{ pointer: '#/headers', code: 'headers_required' }],
    ]);
    // Another path of the same server; then another server, with the headers it shall get.
    expect((await send('PATCH', to, { url: 'http://127.0.0.1:9/b' })).status).toBe(200);
    const moved = await send('PATCH', to, { url, headers: {} });
    expect(moved.body).toMatchObject({ url, header_names: [] });
    expect((await customer.send('PATCH', to, { url: 'http://127.0.0.1:9/', headers })).status).toBe(
      200,
    );
    expect((await customer.send('PATCH', to, { url })).status).toBe(200);
  });
});
