import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePill } from '../../testing/pills.ts';
import { waitFor } from '../../testing/wait.ts';
import { openWebhookFixture, type WebhookFixture } from './testing/webhook-fixture.ts';

let fixture: WebhookFixture;

beforeAll(async () => {
  fixture = await openWebhookFixture();
  // As in production: loopback is refused too.
  await fixture.start({ WEBHOOK_ALLOW_LOOPBACK: 'false' });
});

afterAll(() => fixture?.close());

test.each([
  ['the receiver itself', () => fixture.receiver.url, 'url_refused'],
  ['loopback by https', () => 'https://127.0.0.1/hook', 'url_refused'],
  ['IPv4 in IPv6', () => 'https://[::ffff:a9fe:a9fe]/latest/meta-data', 'url_refused'],
  ['a name of loopback', () => 'https://localhost/hook', 'url_refused'],
])(
  'a refused address that is in the table anyway is not dialled: %s',
  async (name, url, reason) => {
    const symbol = `W${name.length}.T`;
    const endpoint = await fixture.addEndpoint({ symbols: [symbol], url: url() });
    await fixture.write([makePill({ symbol })]);
    const row = await waitFor('the failure', async () => {
      const [kept] = await fixture.db
        .selectFrom('webhook_deliveries')
        .select(['attempts', 'last_reason', 'last_status'])
        .where('endpoint_id', '=', endpoint.id)
        .execute();
      return kept?.attempts === 1 && kept;
    });
    expect(row).toEqual({ attempts: 1, last_reason: reason, last_status: null });
    expect(fixture.receiver.all).toEqual([]);
  },
);
