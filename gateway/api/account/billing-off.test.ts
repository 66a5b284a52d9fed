import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../../testing/accounts.ts';
import { timeText } from '../../http/answer-body.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import type { Customer } from '../testing/customer.ts';

let accounts: AccountApi;
let customer: Customer;

beforeAll(async () => {
  accounts = await openAccountApi({ BILLING: 'off' });
  customer = await accounts.customer('alice');
});

afterAll(() => accounts?.close());

test('without a payment provider no tier can be bought, and the refusal says why', async () => {
  for (const [to, body] of [
    ['/api/subscription/checkout', { tier: 'institutional' }],
    ['/api/billing/test/checkouts/chk_aaaaaaaaaaaa', { outcome: 'paid' }],
    ['/api/billing/events/test', { type: 'payment.succeeded' }],
  ] as const) {
    const answer = await customer.send('POST', to, body);
    expect([answer.status, answer.body.code]).toEqual([503, 'billing_off']);
    expect(answer.body.remedy).toContain('BILLING=test');
  }
});

test('a subscription from before can be lowered and cancelled, but not raised or kept', async () => {
  const { id } = (await customer.send('GET', '/api/account')).body;
  const db = openTestDatabase(accounts.namespace);
  const periodEnd = new Date(Date.now() + 86_400_000);
  const row = { account_id: id, status: 'active', period_end: periodEnd } as const;
  const provider = { provider: 'test', provider_reference: 'sub_before' };
  await db
    .insertInto('subscriptions')
    .values({ ...row, ...provider, tier: 'pro' })
    .execute();
  await db.destroy();
  const lasting = { tier: 'pro', period_end: timeText(periodEnd) };
  for (const [method, to, body, status, expected] of [
    ['PATCH', '', { tier: 'institutional' }, 402, { code: 'payment_required' }],
    ['PATCH', '', { tier: 'basic' }, 200, { ...lasting, next_tier: 'basic' }],
    ['PATCH', '', { tier: 'pro' }, 503, { code: 'billing_off' }],
    ['POST', '/cancel', { at: 'period_end' }, 200, { ...lasting, cancel_at_period_end: true }],
    ['POST', '/resume', undefined, 503, { code: 'billing_off' }],
    ['GET', '', undefined, 200, { ...lasting, next_tier: 'basic', cancel_at_period_end: true }],
  ] as const) {
    const answer = await customer.send(method, `/api/subscription${to}`, body);
    expect([answer.status, answer.body]).toEqual([status, expect.objectContaining(expected)]);
  }
});
