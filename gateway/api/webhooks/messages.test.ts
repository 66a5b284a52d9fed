import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AttemptRow } from '../../../domain/webhooks/deliveries/attempt-rows.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import type { Customer } from '../testing/customer.ts';
import { openWebhookApi, type WebhookApi } from './testing/webhook-api.ts';

let fixture: WebhookApi;

beforeAll(async () => {
  fixture = await openWebhookApi();
});

afterAll(() => fixture?.close());

/** A message given up some minutes ago. */
async function giveUp(id: string, messageId: string, minutesAgo: number, status = 'failed') {
  const at = new Date(Date.now() - minutesAgo * 60_000);
  await fixture.db
    .insertInto('webhook_deliveries')
    .values({
      endpoint_id: id,
      message_id: messageId,
      event_type: 'pill.published',
      pills: 1,
      body: `{"message":"${messageId}"}`,
      status: status as 'failed',
      attempts: 10,
      occurred_at: at,
      next_at: at,
      settled_at: at,
      last_status: 503,
      last_reason: 'status',
    })
    .execute();
}

describe('messages that were given up', () => {
  let customer: Customer;
  let id: string;
  let to: string;
  beforeAll(async () => {
    customer = await fixture.customerOf('pro');
    id = (await fixture.createEndpoint(customer)).endpoint.id;
    to = `/api/webhooks/${id}`;
    await fixture.enable(id);
  });

  test('are listed by status, page by page', async () => {
    for (const [n, status] of ['failed', 'expired', 'failed'].entries()) {
      await giveUp(id, `msg_list${n}`, 60 - n, status);
    }
    const first = (await customer.send('GET', `${to}/deliveries?status=failed&limit=1`)).body;
    expect(first.data).toMatchObject([
      { message_id: 'msg_list2', status: 'failed', attempts: 10, last_status: 503, next_at: null },
    ]);
    const second = await customer.send('GET', first.next);
    expect(second.body.data).toMatchObject([{ message_id: 'msg_list0' }]);
    const waiting = await customer.send('GET', `${to}/deliveries?status=waiting`);
    expect(waiting.body).toEqual({ data: [], next: null });
  });

  test('are recovered from a given time on, with all attempts; earlier ones stay', async () => {
    await fixture.db.deleteFrom('webhook_deliveries').where('endpoint_id', '=', id).execute();
    await giveUp(id, 'msg_before', 30);
    await giveUp(id, 'msg_expired', 20, 'expired');
    await giveUp(id, 'msg_failed', 10);
    await giveUp(id, 'msg_ancient', 31 * 24 * 60);
    const startedAt = new Date();
    const since = new Date(Date.now() - 25 * 60_000).toISOString();
    const answer = await customer.send('POST', `${to}/recover`, { since });
    expect([answer.status, answer.body]).toEqual([200, { recovered: 2, more: false }]);
    const rows = new Map((await fixture.rowsOf(id)).map((row) => [row.message_id, row]));
    expect(rows.get('msg_before')!.status).toBe('failed');
    for (const name of ['msg_expired', 'msg_failed']) {
      const row = rows.get(name)!;
      expect(row).toMatchObject({ status: 'waiting', attempts: 0, settled_at: null });
      // The time of the call: otherwise max_age_s would expire the message before its first
      // attempt.
      expect(row.occurred_at.getTime()).toBeGreaterThan(startedAt.getTime() - 5_000);
    }
    expect(await fixture.isDrainQueued(id)).toBe(true);
    const again = await customer.send('POST', `${to}/recover`, { since });
    expect(again.body).toEqual({ recovered: 0, more: false });
    const all = await customer.send('POST', `${to}/recover`, { since: '2020-01-01T00:00:00Z' });
    expect(all.body.recovered).toBe(1);
    const bad = await customer.send('POST', `${to}/recover`, { since: 'yesterday' });
    expect(bad.body.errors).toMatchObject([{ pointer: '#/since' }]);
  });

  test('a message is resent under its id; the log has the body of a delivered one', async () => {
    await giveUp(id, 'msg_kept', 5);
    const kept = await customer.send('POST', `${to}/deliveries/msg_kept/resend`);
    expect([kept.status, kept.body]).toEqual([202, { message_id: 'msg_kept' }]);
    await fixture.log([
      { ...attempt(id, 'msg_done', 1), outcome: 'retry', body: '{"the":"body"}' },
      { ...attempt(id, 'msg_done', 2) },
    ]);
    const done = await customer.send('POST', `${to}/deliveries/msg_done/resend`);
    expect(done.status).toBe(202);
    const twice = await customer.send('POST', `${to}/deliveries/msg_done/resend`);
    expect(twice.status).toBe(202);
    const rows = (await fixture.rowsOf(id)).filter((row) =>
      /msg_(?:kept|done)/.test(row.message_id),
    );
    expect(rows).toMatchObject([
      { message_id: 'msg_kept', status: 'waiting', attempts: 0 },
      { message_id: 'msg_done', status: 'waiting', body: '{"the":"body"}', pills: 1 },
    ]);
    const unknown = await customer.send('POST', `${to}/deliveries/msg_none/resend`);
    expect([unknown.status, unknown.body.code]).toEqual([404, 'object_not_found']);
  });

  test('nothing is resent to an endpoint that is not enabled', async () => {
    const idle = (await fixture.createEndpoint(customer)).endpoint.id;
    await giveUp(idle, 'msg_x', 5);
    for (const [path, body] of [
      ['deliveries/msg_x/resend', undefined],
      ['recover', { since: '2020-01-01T00:00:00Z' }],
      ['replay', { epoch: fixture.namespace.settings.epoch }],
    ] as const) {
      const refused = await customer.send('POST', `/api/webhooks/${idle}/${path}`, body);
      expect([refused.status, refused.body.state]).toEqual([409, 'pending']);
    }
  });
});

test('the log of attempts is read newest first, by page and by message', async () => {
  const customer = await fixture.customerOf('pro');
  const { id } = (await fixture.createEndpoint(customer)).endpoint;
  const rows = [1, 2, 3].map((n) => attempt(id, n === 2 ? 'msg_b' : 'msg_a', n));
  // Two attempts at the same moment: a page must not lose one of them.
  const same = { ...rows[2]!, message_id: 'msg_c' };
  await fixture.log([...rows, same, attempt('whe_aaaaaaaaaaaa', 'msg_a', 1)]);
  const listed: string[] = [];
  let next = `/api/webhooks/${id}/attempts?limit=1`;
  do {
    const { body } = await customer.send('GET', next);
    for (const one of body.data) listed.push(`${one.message_id} ${one.attempt}`);
    next = body.next;
  } while (next !== null && listed.length < 10);
  expect(listed).toEqual(['msg_c 3', 'msg_a 3', 'msg_b 2', 'msg_a 1']);
  const ofB = await customer.send('GET', `/api/webhooks/${id}/attempts?message_id=msg_b`);
  expect(ofB.body.data).toMatchObject([
    { message_id: 'msg_b', attempt: 2, status: 200, reason: null, latency_ms: 1.5, answer: 'ok' },
  ]);
  const none = await customer.send('GET', `/api/webhooks/${id}/attempts?outcome=failed`);
  expect(none.body.data).toEqual([]);
  const forged = await customer.send('GET', `/api/webhooks/${id}/attempts?before=x'%20OR%201`);
  expect([forged.status, forged.body.errors[0].parameter]).toEqual([400, 'before']);
});

test('attempts are filtered by status and time; a message has its posted body', async () => {
  const customer = await fixture.customerOf('pro');
  const { id } = (await fixture.createEndpoint(customer)).endpoint;
  const startMicros = nowMicros() - 60_000_000;
  const of = (n: number, status: number, body = '') => ({
    ...attempt(id, `msg_${n}`, 1),
    ...{ at: startMicros + n * 1_000_000, status, body },
  });
  await fixture.log([of(1, 200, '{"a":1}'), of(2, 503), of(3, 0), of(4, 503)]);
  const listed = async (query: string) => {
    const { body } = await customer.send('GET', `/api/webhooks/${id}/attempts?${query}`);
    return body.data?.map((one: { message_id: string }) => one.message_id) ?? body;
  };
  const at = (n: number) => formatTimestamp(startMicros + n * 1_000_000);
  expect(await listed('status=503')).toEqual(['msg_4', 'msg_2']);
  expect(await listed('status=0')).toEqual(['msg_3']);
  expect(await listed(`from=${at(2)}&to=${at(4)}`)).toEqual(['msg_3', 'msg_2']);
  expect(await listed(`from=${at(3)}&status=503`)).toEqual(['msg_4']);
  for (const bad of ['status=600', 'status=x', 'from=yesterday', `to=2026-02-30T00:00:00Z`]) {
    expect(await listed(bad), bad).toMatchObject({ code: 'parameter_invalid' });
  }
  const message = await customer.send('GET', `/api/webhooks/${id}/deliveries/msg_1`);
  expect(message.body).toMatchObject({ message_id: 'msg_1', body: '{"a":1}' });
  const unknown = await customer.send('GET', `/api/webhooks/${id}/deliveries/msg_9`);
  expect(unknown.status).toBe(404);
  const stranger = await fixture.customerOf('pro');
  const theirs = await stranger.send('GET', `/api/webhooks/${id}/deliveries/msg_1`);
  expect(theirs.status).toBe(404);
});

test('the attempts of an endpoint are counted by hour', async () => {
  const customer = await fixture.customerOf('pro');
  const { id } = (await fixture.createEndpoint(customer)).endpoint;
  const hourMicros = 3_600_000_000;
  const hour = Math.floor(nowMicros() / hourMicros) * hourMicros;
  const at = (hours: number, outcome: AttemptRow['outcome'], latencyMs: number) => ({
    ...attempt(id, 'msg_h', 1),
    ...{ at: hour - hours * hourMicros, outcome, latency_us: latencyMs * 1_000 },
  });
  await fixture.log([
    ...[1, 2, 3].map((ms) => at(2, 'delivered', ms)),
    ...[at(2, 'retry', 2), at(0, 'failed', 100), at(0, 'expired', 100), at(30, 'delivered', 1)],
    { ...at(0, 'delivered', 1), endpoint_id: 'whe_aaaaaaaaaaaa' },
  ]);
  const { body } = await customer.send('GET', `/api/webhooks/${id}/health?hours=24`);
  const near = (ms: number) => expect.closeTo(ms, ms === 100 ? -1 : 0);
  expect(body.data).toEqual([
    {
      hour: formatTimestamp(hour - 2 * hourMicros),
      ...{ delivered: 3, retried: 1, given_up: 0, p50_ms: near(2), p99_ms: expect.any(Number) },
    },
    {
      hour: formatTimestamp(hour),
      ...{ delivered: 0, retried: 0, given_up: 2, p50_ms: near(100), p99_ms: near(100) },
    },
  ]);
  const all = await customer.send('GET', `/api/webhooks/${id}/health?hours=720`);
  expect(all.body.data).toHaveLength(3);
  const other = await fixture.customerOf('pro');
  const hidden = await other.send('GET', `/api/webhooks/${id}/health`);
  expect([hidden.status, hidden.body.code]).toEqual([404, 'object_not_found']);
  const wrong = await customer.send('GET', `/api/webhooks/${id}/health?hours=721`);
  expect(wrong.status).toBe(400);
});

test('without ClickHouse the log is unavailable, but stored messages are still resent', async () => {
  const owner = await fixture.customerOf('pro');
  const { id } = (await fixture.createEndpoint(owner)).endpoint;
  await fixture.enable(id);
  await giveUp(id, 'msg_kept', 5);
  const at = await fixture.startApi({ CLICKHOUSE_URL: 'http://127.0.0.1:9' });
  const customer = fixture.stranger(owner.email.split('@', 1)[0]!, at);
  await customer.signIn();
  const resend = (name: string) =>
    customer.send('POST', `/api/webhooks/${id}/deliveries/${name}/resend`);
  const attempts = await customer.send('GET', `/api/webhooks/${id}/attempts`);
  for (const { status, body } of [attempts, await resend('msg_unknown')]) {
    expect([status, body.code, body.retry]).toEqual([503, 'webhook_log_unavailable', 'after']);
  }
  expect((await resend('msg_kept')).status).toBe(202);
});

let attempts = 0;
function attempt(endpointId: string, messageId: string, n: number): AttemptRow {
  attempts += 1;
  return {
    account_id: 'acc_x',
    endpoint_id: endpointId,
    at: nowMicros() + attempts,
    attempt: n,
    message_id: messageId,
    event_type: 'pill.published',
    pills: 1,
    outcome: 'delivered',
    status: 200,
    reason: '',
    detail: '',
    latency_us: 1_500,
    since_received_us: 9_000,
    answer: 'ok',
    body: '',
  };
}
