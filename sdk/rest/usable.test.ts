import { expect, test } from 'vitest';
import { createClient } from '../index.ts';
import type { HttpAnswer } from '../testing/scripted-server.ts';
import { useScriptedServer } from '../testing/use-scripted-server.ts';

const fixture = useScriptedServer();

const GOOD = {
  subject: { symbol: '7203.T' },
  checked_at: '2026-11-20T01:02:03.456000Z',
  verdict: 'verified',
  usable: true,
  reasons: [] as object[],
  valid_until: '2026-11-20T01:02:13.456000Z',
};
const OLD = { code: 'pill_too_old', detail: '900 s old, limit 5 s' };

const usable = (answer: HttpAnswer) => {
  fixture.server.answer(() => answer);
  return createClient({ apiUrl: fixture.server.httpUrl, key: 'k' }).usable('7203.T');
};

test('verified: the answer says for how long, minus the time of the request', async () => {
  const answer = await usable({ body: GOOD });
  expect(answer).toMatchObject({ usable: true, reason: 'verified', verdict: GOOD });
  expect(answer.validForMs).toBeGreaterThan(0);
  expect(answer.validForMs).toBeLessThan(10_000);
});

test.each<[string, HttpAnswer, string]>([
  ['stale', { body: { ...GOOD, verdict: 'stale', usable: false, reasons: [OLD] } }, 'pill_too_old'],
  ['no reason', { body: { ...GOOD, verdict: 'unknown', usable: false } }, 'unknown'],
  ['not verified, yet usable', { body: { ...GOOD, verdict: 'stale' } }, 'stale'],
  ['of another symbol', { body: { ...GOOD, subject: { symbol: 'X' } } }, 'verdict_malformed'],
  ['usable as a text', { body: { ...GOOD, usable: 'true' } }, 'verdict_malformed'],
  ['null', { body: 'null' }, 'verdict_malformed'],
  ['expired on the way', { body: { ...GOOD, valid_until: GOOD.checked_at } }, 'verdict_expired'],
  ['without an end', { body: { ...GOOD, valid_until: undefined } }, 'verdict_expired'],
  ['not JSON', { body: 'oops' }, 'not_pillole'],
  [
    'no such endpoint',
    { status: 404, body: { title: 'x', code: 'not_found' } },
    'verify_unavailable',
  ],
  [
    'quota',
    { status: 429, body: { title: 'x', code: 'daily_quota_exceeded' } },
    'daily_quota_exceeded',
  ],
  ['a proxy in between', { status: 502, body: '' }, 'http_502'],
])('in doubt the answer is no, with the reason: %s', async (_, answer, reason) => {
  expect(await usable(answer)).toMatchObject({ usable: false, reason, validForMs: 0 });
  expect(fixture.server.requests).toHaveLength(1); // one attempt: a late positive answer is useless
});
