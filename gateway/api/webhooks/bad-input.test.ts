import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Customer } from '../testing/customer.ts';
import { ENDPOINT_SETTINGS, openWebhookApi, type WebhookApi } from './testing/webhook-api.ts';

let fixture: WebhookApi;
let customer: Customer;
let id: string;

beforeAll(async () => {
  fixture = await openWebhookApi();
  customer = await fixture.customerOf('pro');
  id = (await fixture.createEndpoint(customer, { min_spread: 1 })).endpoint.id;
});

afterAll(() => fixture?.close());

const TABLE: [object, string][] = [
  [{ url: 'http://example.com/' }, '#/url'],
  [{ url: 'https://10.0.0.1/' }, '#/url'],
  [{ url: 'https://127.1/' }, '#/url'],
  [{ url: 'https://user:pass@example.com/' }, '#/url'],
  [{ url: 'not a url' }, '#/url'],
  [{ url: `https://example.com/${'a'.repeat(2_048)}` }, '#/url'],
  [{ event_types: [] }, '#/event_types'],
  [{ event_types: ['pills.published'] }, '#/event_types/0'],
  [{ event_types: ['pill.published', 'pill.published'] }, '#/event_types'],
  [{ symbols: ['7203.T', 'lower'] }, '#/symbols/1'],
  [{ symbols: ['A\u0000'] }, '#/symbols/0'],
  [{ symbols: Array.from({ length: 1_001 }, (_, n) => `S${n}`) }, '#/symbols'],
  [{ states: ['a\u0000b'] }, '#/states/0'],
  [{ states: [`e${'\u0301'.repeat(100)}`] }, '#/states/0'],
  [{ states: Array.from({ length: 51 }, (_, n) => `s${n}`) }, '#/states'],
  [{ min_confidence: -1 }, '#/min_confidence'],
  [{ min_confidence: '0.5' }, '#/min_confidence'],
  [{ min_spread: 2, max_spread: 1 }, '#/max_spread'],
  [{ backfill: 'yes' }, '#/backfill'],
  [{ description: 'a\u0000' }, '#/description'],
  [{ headers: { Host: 'x' } }, '#/headers/Host'],
  [{ headers: { 'webhook-id': 'x' } }, '#/headers/webhook-id'],
  [{ headers: { 'x y': '1' } }, '#/headers/x y'],
  [{ headers: { 'x-a': 'a\r\nHost: b' } }, '#/headers/x-a'],
  [{ headers: { 'x-a': 1 } }, '#/headers/x-a'],
  [{ rate_per_s: 0 }, '#/rate_per_s'],
  [{ rate_per_s: 1_001 }, '#/rate_per_s'],
  [{ max_age_s: 259_201 }, '#/max_age_s'],
  [{ surplus: 1 }, '#/surplus'],
];

test.each(TABLE)('%j is refused at %s', async (fields, pointer) => {
  for (const [method, to, body] of [
    ['POST', '/api/webhooks', { ...ENDPOINT_SETTINGS, ...fields }],
    ['PATCH', `/api/webhooks/${id}`, fields],
  ] as const) {
    const answer = await customer.send(method, to, body);
    expect([method, answer.status, answer.body.code]).toEqual([method, 400, 'body_invalid']);
    const faults = answer.body.errors as { pointer: string; detail: string }[];
    expect(faults.map((fault) => fault.pointer)).toContain(pointer);
    for (const { detail } of faults) expect(detail).toMatch(/^\S.*\.$/);
  }
});

test('a change that contradicts the stored settings is refused too', async () => {
  const answer = await customer.send('PATCH', `/api/webhooks/${id}`, { max_spread: 0.5 });
  expect(answer.body.errors).toMatchObject([{ pointer: '#/max_spread' }]);
});

test('a thousand symbols and twenty headers fit into a body', async () => {
  const symbols = Array.from({ length: 1_000 }, (_, n) => `S${String(n).padStart(31, '0')}`);
  const names = Array.from({ length: 20 }, (_, n) => `x-${n}`);
  const headers = Object.fromEntries(names.map((name) => [name, 'v'.repeat(1_024)]));
  const changed = await customer.send('PATCH', `/api/webhooks/${id}`, { symbols, headers });
  expect(changed.status).toBe(200);
  expect(changed.body).toMatchObject({ symbols, header_names: names });
});
