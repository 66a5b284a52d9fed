import { describe, expect, test } from 'vitest';
import { fixedPepper } from '../access/pepper.ts';
import type { BillingEvent } from './billing-provider.ts';
import { createTestBilling } from './test-billing.ts';

const billing = createTestBilling({
  pepper: fixedPepper(Buffer.alloc(32, 1)),
  pageUrl: 'http://x.invalid',
});

describe('an event over the network', () => {
  const sent: BillingEvent = {
    provider: 'test',
    eventId: 'evt_1',
    type: 'payment.succeeded',
    accountId: 'acc_1',
    tier: 'pro',
    periodEnd: new Date('2031-02-01T00:00:00Z'),
    at: new Date('2031-01-01T00:00:00Z'),
  };

  test('is parsed as it was signed', () => {
    const { body, headers } = billing.sign(sent);
    expect(billing.parseEvent(body, headers)).toEqual(sent);
    const several = `v1,AAAA ${headers['webhook-signature']}`;
    const rotated = { ...headers, 'webhook-signature': several };
    expect(billing.parseEvent(body, rotated)).toEqual(sent);
  });

  test.each([
    ['no headers', {}],
    ['an old timestamp', { 'webhook-timestamp': String(Math.floor(Date.now() / 1000) - 301) }],
    ['a future timestamp', { 'webhook-timestamp': String(Math.floor(Date.now() / 1000) + 330) }],
    ['another id', { 'webhook-id': 'evt_2' }],
    ['no version', { 'webhook-signature': 'AAAA' }],
    ['garbage', { 'webhook-signature': 'v1,\u0000', 'webhook-timestamp': 'NaN' }],
  ])('is refused with %s', (what, changed) => {
    const { body, headers } = billing.sign(sent);
    const all = what === 'no headers' ? {} : { ...headers, ...changed };
    expect(billing.parseEvent(body, all)).toBe('signature_invalid');
  });

  test('is refused if its body was changed or it was signed with another pepper', () => {
    const { body, headers } = billing.sign(sent);
    const changed = Buffer.from(body.toString().replace('pro', 'bas'));
    expect(billing.parseEvent(changed, headers)).toBe('signature_invalid');
    const other = createTestBilling({
      pepper: fixedPepper(Buffer.alloc(32, 7)),
      pageUrl: 'http://x.invalid',
    });
    const foreign = other.sign(sent);
    expect(billing.parseEvent(foreign.body, foreign.headers)).toBe('signature_invalid');
  });

  test('of an unknown type is not for us', () => {
    const { body, headers } = billing.sign({ ...sent, type: 'customer.moved' as 'payment.failed' });
    expect(billing.parseEvent(body, headers)).toBe('not_for_us');
  });
});
