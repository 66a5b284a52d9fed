import { Ajv } from 'ajv';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waitFor } from '../../lib/testing/wait.ts';
import { EVENT_CATALOGUE } from '../../lib/webhooks/event-catalogue.ts';
import { openWebhookWorld, type WebhookWorld } from './testing/world.ts';

const DISABLE_AFTER_S = 1_000;

let world: WebhookWorld;

beforeAll(async () => {
  world = await openWebhookWorld();
  await world.start({ WEBHOOK_DISABLE_AFTER_S: String(DISABLE_AFTER_S) });
});

afterAll(() => world?.close());

test('who fails on is warned at 50, 70 and 90 %, then disabled; each is told once, by another endpoint', async () => {
  const account = await world.newAccount();
  const other = await world.addEndpoint({
    account,
    eventTypes: ['endpoint.failing', 'endpoint.disabled'],
  });
  const failing = await world.addEndpoint({
    account,
    eventTypes: ['endpoint.failing', 'endpoint.disabled', 'pill.published'],
  });
  const failedFor = (seconds: number) =>
    sql`UPDATE webhook_endpoints SET failing_since = date_trunc('second', created_at)
        - make_interval(secs => ${seconds}) WHERE id = ${failing.id}`.execute(world.db);
  const told = () => world.receiver.at(other.path).map(({ body }) => body);
  // The beginning stays the same in life; here it is what moves.
  for (const [at, [seconds, percent]] of [
    [510, 50],
    [720, 70],
    [910, 90],
  ].entries()) {
    await failedFor(seconds!);
    await waitFor(`${percent} %`, () => told().length === at + 1);
    expect(told().at(-1)).toMatchObject({
      type: 'endpoint.failing',
      data: { endpoint: failing.id, percent },
    });
  }
  await failedFor(DISABLE_AFTER_S);
  await waitFor('the end', () => told().length === 4);
  expect(told().at(-1)).toMatchObject({
    type: 'endpoint.disabled',
    data: { endpoint: failing.id, reason: 'failing', recover: expect.stringContaining(failing.id) },
  });
  const row = await world.db
    .selectFrom('webhook_endpoints')
    .select(['status', 'disabled_reason'])
    .where('id', '=', failing.id)
    .executeTakeFirstOrThrow();
  expect(row).toEqual({ status: 'disabled', disabled_reason: 'failing' });
  // What is wrong with an endpoint is told to the others alone.
  expect(world.receiver.at(failing.path)).toEqual([]);
  const ajv = new Ajv({ strict: false });
  for (const body of told()) {
    const type = body.type as 'endpoint.failing';
    const isValid = ajv.validate(EVENT_CATALOGUE[type].schema, body);
    expect(isValid, ajv.errorsText()).toBe(true);
  }
  expect(world.receiver.at(other.path).every(({ isVerified }) => isVerified)).toBe(true);
});
