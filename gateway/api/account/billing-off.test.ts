import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import getPort from 'get-port';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace } from '../../../lib/testing/namespace.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { readApiConfig } from '../config.ts';
import { type Customer, createCustomer } from '../testing/customer.ts';

const NEEDED = {
  ...{ KAFKA_BROKERS: 'x:1', SCHEMA_REGISTRY_URL: 'http://x', DATABASE_URL: 'postgres://x' },
  ...{ KEY_PEPPER_FILE: 'x', CLICKHOUSE_URL: 'http://x', PUBLIC_URL: 'https://api.example.com' },
};

let outbox: string;
let api: TestProcess;
let customer: Customer;

beforeAll(async () => {
  const namespace = await createNamespace();
  outbox = await mkdtemp(path.join(os.tmpdir(), 'pillole-outbox-'));
  const port = await getPort();
  const base = `http://127.0.0.1:${port}`;
  api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    API_PORT: String(port),
    PUBLIC_URL: base,
    MAIL_OUTBOX: outbox,
    BILLING: 'off',
  });
  await api.ready();
  customer = createCustomer(base, outbox, 'alice');
  await customer.signUp();
});

afterAll(async () => {
  await api?.stop();
  await rm(outbox, { recursive: true, force: true });
});

test.each([
  [{}, true],
  [{ API_HOST: '0.0.0.0' }, false],
  [{ API_HOST: '0.0.0.0', BILLING: 'test' }, true],
  [{ API_HOST: '127.0.0.1', BILLING: 'off' }, false],
])('%j: tiers for nothing %s', (env, canBuy) => {
  expect(readApiConfig({ ...NEEDED, ...env }).canBuy).toBe(canBuy);
});

test('where no money can be taken nobody gets a tier, and is told why', async () => {
  for (const [to, body] of [
    ['/api/subscription/checkout', { tier: 'institutional' }],
    ['/api/billing/test/checkouts/chk_aaaaaaaaaaaa', { outcome: 'paid' }],
  ] as const) {
    const answer = await customer.send('POST', to, body);
    expect([answer.status, answer.body.code]).toEqual([503, 'billing_off']);
    expect(answer.body.remedy).toContain('BILLING=test');
  }
});
