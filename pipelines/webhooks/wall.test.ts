import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePill } from '../../lib/testing/pills.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { openWebhookWorld, type WebhookWorld } from './testing/world.ts';

let world: WebhookWorld;

beforeAll(async () => {
  world = await openWebhookWorld();
  // As in production: not even loopback.
  await world.start({ WEBHOOK_ALLOW_LOOPBACK: 'false' });
});

afterAll(() => world?.close());

test.each([
  ['the receiver itself', () => world.receiver.url, 'url_refused'],
  ['loopback by https', () => 'https://127.0.0.1/hook', 'url_refused'],
  ['IPv4 in IPv6', () => 'https://[::ffff:a9fe:a9fe]/latest/meta-data', 'url_refused'],
  ['a name of loopback', () => 'https://localhost/hook', 'url_refused'],
])(
  'an address that got into the table all the same is not dialled: %s',
  async (name, url, reason) => {
    const symbol = `W${name.length}.T`;
    const endpoint = await world.addEndpoint({ symbols: [symbol], url: url() });
    await world.write([makePill({ symbol })]);
    const row = await waitFor('the failure', async () => {
      const [kept] = await world.db
        .selectFrom('webhook_deliveries')
        .select(['attempts', 'last_reason', 'last_status'])
        .where('endpoint_id', '=', endpoint.id)
        .execute();
      return kept?.attempts === 1 && kept;
    });
    expect(row).toEqual({ attempts: 1, last_reason: reason, last_status: null });
    expect(world.receiver.all).toEqual([]);
  },
);
