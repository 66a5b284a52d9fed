// Where a dispatcher may connect to, as a process: nothing of ours, and only through the proxy.
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type CustomerServer,
  openCustomerServer,
} from '../../domain/webhooks/send/testing/customer-server.ts';
import { type Decoy, openDecoy } from '../../domain/webhooks/send/testing/decoy.ts';
import { type DnsStub, openDnsStub } from '../../domain/webhooks/send/testing/dns-stub.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import { type ConnectProxy, openConnectProxy } from '../../testing/connect-proxy.ts';
import { makePill } from '../../testing/pills.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { openWebhookFixture, type WebhookFixture } from './testing/webhook-fixture.ts';

let fixture: WebhookFixture;
let dispatcher: TestProcess | undefined;
let symbols = 0;

beforeAll(async () => {
  fixture = await openWebhookFixture();
});
afterEach(() => dispatcher?.stop());
afterAll(() => fixture?.close());

/** Publishes a pill to a new endpoint. @returns the endpoint's id and path */
async function publishTo(url?: string) {
  symbols += 1;
  const symbol = `E${symbols}.T`;
  const endpoint = await fixture.addEndpoint({
    symbols: [symbol],
    ...(url === undefined ? {} : { url }),
  });
  await fixture.write([makePill({ symbol })]);
  return endpoint;
}

function failureOf(endpointId: string) {
  return waitFor('the failure', async () => {
    const row = await fixture.db
      .selectFrom('webhook_deliveries')
      .innerJoin('webhook_endpoints as e', 'e.id', 'endpoint_id')
      .select(['last_reason', 'e.failing_since'])
      .where('endpoint_id', '=', endpointId)
      .where('attempts', '>', 0)
      .executeTakeFirst();
    return row !== undefined && row;
  });
}

test('with a public address, loopback is refused whatever the flags', async () => {
  dispatcher = await fixture.start({
    WEBHOOK_ALLOW_LOOPBACK: 'true',
    PUBLIC_URL: 'https://api.example.com',
  });
  const endpoint = await publishTo();
  expect(await failureOf(endpoint.id)).toMatchObject({ last_reason: 'url_refused' });
  expect(fixture.receiver.all).toEqual([]);
});

test('in development, no port of an engine, of the process or of the list is dialled', async () => {
  const decoy: Decoy = await openDecoy('127.0.0.1');
  dispatcher = await fixture.start({
    PUBLIC_URL: 'http://127.0.0.1:8080',
    WEBHOOK_REFUSED_PORTS: `1-9,${decoy.port}`,
  });
  const { env } = fixture;
  const addresses = [
    `http://${env.KAFKA_BROKERS}`,
    ...[env.SCHEMA_REGISTRY_URL, env.CLICKHOUSE_URL, env.DATABASE_URL, dispatcher.opsUrl],
    `http://localhost:${decoy.port}`,
  ];
  for (const address of addresses) {
    const { port } = new URL(address!);
    expect(Number(port)).toBeGreaterThan(0);
    const { id } = await publishTo(`http://127.0.0.1:${port}/`);
    expect(await failureOf(id), address).toMatchObject({ last_reason: 'url_refused' });
  }
  expect(decoy.connectionCount()).toBe(0);
  const own = await publishTo();
  await waitFor('the pill', () => fixture.receiver.all.some(({ path: at }) => at === own.path));
  await decoy.close();
});

describe('with an egress proxy', () => {
  const PASSWORD = 'proxy-password-of-ours';
  let stub: DnsStub;
  let proxy: ConnectProxy;
  let receiver: CustomerServer;
  beforeAll(async () => {
    stub = await openDnsStub();
    stub.set('hooks.example.com', ['8.8.8.8']);
    receiver = await openCustomerServer((_, response) => response.end(), { secure: 'server' });
    proxy = await openConnectProxy({
      routes: () => ({ '8.8.8.8:443': receiver.port }),
      authorization: `Basic ${Buffer.from(`pillole:${PASSWORD}`).toString('base64')}`,
    });
  });
  afterAll(async () => {
    await proxy?.close();
    await receiver?.close();
    await stub?.close();
  });

  test('messages leave only through it; its outage is not a fault of the endpoint', async () => {
    dispatcher = await fixture.start({
      LOG_LEVEL: 'trace',
      NODE_EXTRA_CA_CERTS: path.join(packageRoot, 'domain/webhooks/send/testing/tls/authority.pem'),
      WEBHOOK_DNS_SERVERS: stub.server,
      WEBHOOK_EGRESS_PROXY: `http://pillole:${PASSWORD}@127.0.0.1:${proxy.port}`,
    });
    const before = fixture.receiver.all.length;
    const loopback = await publishTo();
    expect(await failureOf(loopback.id)).toMatchObject({ last_reason: 'url_refused' });
    const url = 'https://hooks.example.com/hook';
    await publishTo(url);
    await waitFor('the message', () => receiver.requestCount() === 1);
    expect(proxy.requested).toEqual(['8.8.8.8:443']);

    await proxy.close();
    const late = await publishTo(url);
    const failure = await failureOf(late.id);
    expect(failure).toEqual({ last_reason: 'egress_down', failing_since: null });
    const metrics = await (await fetch(`${dispatcher.opsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^pillole_webhook_egress_down_total [1-9]/m);
    expect(receiver.requestCount()).toBe(1);
    expect(fixture.receiver.all.length).toBe(before);
    const output = dispatcher.output();
    expect(output.length).toBeGreaterThan(100);
    expect(output).not.toContain(PASSWORD);
    expect(output).not.toContain(Buffer.from(`pillole:${PASSWORD}`).toString('base64'));
  });
});
