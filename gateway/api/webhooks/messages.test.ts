import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nowMicros } from '../../../lib/clock.ts';
import type { AttemptRow } from '../../../lib/webhooks/attempts.ts';
import type { Customer } from '../testing/customer.ts';
import { type Desk, openDesk } from './testing/desk.ts';

let desk: Desk;

beforeAll(async () => {
  desk = await openDesk();
});

afterAll(() => desk?.close());

/** A message that was given up, some minutes ago. */
async function giveUp(id: string, messageId: string, minutesAgo: number, status = 'failed') {
  const at = new Date(Date.now() - minutesAgo * 60_000);
  await desk.db
    .insertInto('webhook_deliveries')
    .values({
      ...{ endpoint_id: id, message_id: messageId, event_type: 'pill.published', pills: 1 },
      ...{ body: `{"message":"${messageId}"}`, status: status as 'failed', attempts: 10 },
      ...{ occurred_at: at, next_at: at, settled_at: at, last_status: 503, last_reason: 'status' },
    })
    .execute();
}

describe('messages that were given up', () => {
  let customer: Customer;
  let id: string;
  let to: string;
  beforeAll(async () => {
    customer = await desk.customerOf('pro');
    id = (await desk.make(customer)).endpoint.id;
    to = `/api/webhooks/${id}`;
    await desk.enable(id);
  });

  test('are listed by status, page by page', async () => {
    for (const [n, status] of ['failed', 'expired', 'failed'].entries()) {
      await giveUp(id, `msg_list${n}`, 60 - n, status);
    }
    const first = (await customer.send('GET', `${to}/deliveries?status=failed&limit=1`)).body;
    expect(first.data).toMatchObject([
      { message_id: 'msg_list2', status: 'failed', attempts: 10, last_status: 503, next_at: null },
    ]);
    const second = await customer.send(
      'GET',
      `${to}/deliveries?status=failed&limit=1&before=${first.next}`,
    );
    expect(second.body.data).toMatchObject([{ message_id: 'msg_list0' }]);
    const waiting = await customer.send('GET', `${to}/deliveries?status=waiting`);
    expect(waiting.body).toEqual({ data: [], next: null });
  });

  test('are recovered since a time, with a full life; those of before stay', async () => {
    await desk.db.deleteFrom('webhook_deliveries').where('endpoint_id', '=', id).execute();
    await giveUp(id, 'msg_before', 30);
    await giveUp(id, 'msg_expired', 20, 'expired');
    await giveUp(id, 'msg_failed', 10);
    await giveUp(id, 'msg_ancient', 31 * 24 * 60);
    const startedAt = new Date();
    const since = new Date(Date.now() - 25 * 60_000).toISOString();
    const answer = await customer.send('POST', `${to}/recover`, { since });
    expect([answer.status, answer.body]).toEqual([200, { recovered: 2, more: false }]);
    const rows = new Map((await desk.rowsOf(id)).map((row) => [row.message_id, row]));
    expect(rows.get('msg_before')!.status).toBe('failed');
    for (const name of ['msg_expired', 'msg_failed']) {
      const row = rows.get(name)!;
      expect(row).toMatchObject({ status: 'waiting', attempts: 0, settled_at: null });
      // Of now: by max_age_s it would expire again before its first attempt.
      expect(row.occurred_at.getTime()).toBeGreaterThan(startedAt.getTime() - 5_000);
    }
    expect(await desk.isWoken(id)).toBe(true);
    const again = await customer.send('POST', `${to}/recover`, { since });
    expect(again.body).toEqual({ recovered: 0, more: false });
    const all = await customer.send('POST', `${to}/recover`, { since: '2020-01-01T00:00:00Z' });
    expect(all.body.recovered).toBe(1);
    const bad = await customer.send('POST', `${to}/recover`, { since: 'yesterday' });
    expect(bad.body.errors).toMatchObject([{ pointer: '#/since' }]);
  });

  test('one is sent again under its id; of a delivered one the log has the body', async () => {
    await giveUp(id, 'msg_kept', 5);
    const kept = await customer.send('POST', `${to}/deliveries/msg_kept/resend`);
    expect([kept.status, kept.body]).toEqual([202, { message_id: 'msg_kept' }]);
    await desk.log([
      { ...attempt(id, 'msg_done', 1), outcome: 'retry', body: '{"the":"body"}' },
      { ...attempt(id, 'msg_done', 2) },
    ]);
    const done = await customer.send('POST', `${to}/deliveries/msg_done/resend`);
    expect(done.status).toBe(202);
    const twice = await customer.send('POST', `${to}/deliveries/msg_done/resend`);
    expect(twice.status).toBe(202);
    const rows = (await desk.rowsOf(id)).filter((row) => /msg_(?:kept|done)/.test(row.message_id));
    expect(rows).toMatchObject([
      { message_id: 'msg_kept', status: 'waiting', attempts: 0 },
      { message_id: 'msg_done', status: 'waiting', body: '{"the":"body"}', pills: 1 },
    ]);
    const unknown = await customer.send('POST', `${to}/deliveries/msg_none/resend`);
    expect([unknown.status, unknown.body.code]).toEqual([404, 'object_not_found']);
  });

  test('nothing is sent again to one that is not enabled', async () => {
    const idle = (await desk.make(customer)).endpoint.id;
    await giveUp(idle, 'msg_x', 5);
    for (const [path, body] of [
      ['deliveries/msg_x/resend', undefined],
      ['recover', { since: '2020-01-01T00:00:00Z' }],
      ['replay', { epoch: desk.namespace.settings.epoch }],
    ] as const) {
      const refused = await customer.send('POST', `/api/webhooks/${idle}/${path}`, body);
      expect([refused.status, refused.body.state]).toEqual([409, 'pending']);
    }
  });
});

test('the log of attempts is read newest first, page by page, and by message', async () => {
  const customer = await desk.customerOf('pro');
  const { id } = (await desk.make(customer)).endpoint;
  const rows = [1, 2, 3].map((n) => attempt(id, n === 2 ? 'msg_b' : 'msg_a', n));
  // Two at the same moment: a page must not lose one of them.
  const same = { ...rows[2]!, message_id: 'msg_c' };
  await desk.log([...rows, same, attempt('whe_aaaaaaaaaaaa', 'msg_a', 1)]);
  const told: string[] = [];
  let before = '';
  do {
    const { body } = await customer.send('GET', `/api/webhooks/${id}/attempts?limit=1${before}`);
    for (const one of body.data) told.push(`${one.message_id} ${one.attempt}`);
    before = body.next === null ? '' : `&before=${encodeURIComponent(body.next)}`;
  } while (before !== '' && told.length < 10);
  expect(told).toEqual(['msg_c 3', 'msg_a 3', 'msg_b 2', 'msg_a 1']);
  const ofB = await customer.send('GET', `/api/webhooks/${id}/attempts?message_id=msg_b`);
  expect(ofB.body.data).toMatchObject([
    { message_id: 'msg_b', attempt: 2, status: 200, reason: null, latency_ms: 1.5, answer: 'ok' },
  ]);
  const none = await customer.send('GET', `/api/webhooks/${id}/attempts?outcome=failed`);
  expect(none.body.data).toEqual([]);
  const forged = await customer.send('GET', `/api/webhooks/${id}/attempts?before=x'%20OR%201`);
  expect([forged.status, forged.body.errors[0].parameter]).toEqual([400, 'before']);
});

test('while ClickHouse is away the log says so; what is kept is sent again all the same', async () => {
  const owner = await desk.customerOf('pro');
  const { id } = (await desk.make(owner)).endpoint;
  await desk.enable(id);
  await giveUp(id, 'msg_kept', 5);
  const at = await desk.startApi({ CLICKHOUSE_URL: 'http://127.0.0.1:9' });
  const customer = desk.stranger(owner.email.split('@', 1)[0]!, at);
  await customer.signIn();
  const resend = (name: string) =>
    customer.send('POST', `/api/webhooks/${id}/deliveries/${name}/resend`);
  const told = await customer.send('GET', `/api/webhooks/${id}/attempts`);
  for (const { status, body } of [told, await resend('msg_unknown')]) {
    expect([status, body.code, body.retry]).toEqual([503, 'webhook_log_unavailable', 'after']);
  }
  expect((await resend('msg_kept')).status).toBe(202);
});

let attempts = 0;
function attempt(endpointId: string, messageId: string, n: number): AttemptRow {
  attempts += 1;
  return {
    ...{ account_id: 'acc_x', endpoint_id: endpointId, at: nowMicros() + attempts, attempt: n },
    ...{ message_id: messageId, event_type: 'pill.published', pills: 1, outcome: 'delivered' },
    ...{ status: 200, reason: '', detail: '', latency_us: 1_500, since_received_us: 9_000 },
    ...{ answer: 'ok', body: '' },
  };
}
