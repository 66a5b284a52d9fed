import { Ajv } from 'ajv';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EVENT_CATALOGUE } from '../../../domain/webhooks/events/event-catalogue.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openWebhookFixture, type WebhookFixture } from '../testing/webhook-fixture.ts';

const DISABLE_AFTER_S = 1_000;

let fixture: WebhookFixture;

beforeAll(async () => {
  fixture = await openWebhookFixture();
  await fixture.start({ WEBHOOK_DISABLE_AFTER_S: String(DISABLE_AFTER_S) });
});

afterAll(() => fixture?.close());

test('an endpoint that keeps failing raises events at 50, 70 and 90 %, then is disabled; once each', async () => {
  const account = await fixture.newAccount();
  const other = await fixture.addEndpoint({
    account,
    eventTypes: ['endpoint.failing', 'endpoint.disabled'],
  });
  const failing = await fixture.addEndpoint({
    account,
    eventTypes: ['endpoint.failing', 'endpoint.disabled', 'pill.published'],
  });
  const failedFor = (seconds: number) =>
    sql`UPDATE webhook_endpoints SET failing_since = date_trunc('second', created_at)
        - make_interval(secs => ${seconds}) WHERE id = ${failing.id}`.execute(fixture.db);
  const events = () => fixture.receiver.at(other.path).map(({ body }) => body);
  // The test moves the start of the failure instead of waiting.
  for (const [at, [seconds, percent]] of [
    [510, 50],
    [720, 70],
    [910, 90],
  ].entries()) {
    await failedFor(seconds!);
    await waitFor(`${percent} %`, () => events().length === at + 1);
    expect(events().at(-1)).toMatchObject({
      type: 'endpoint.failing',
      data: { endpoint: failing.id, percent },
    });
  }
  await failedFor(DISABLE_AFTER_S);
  await waitFor('all four events', () => events().length === 4);
  expect(events().at(-1)).toMatchObject({
    type: 'endpoint.disabled',
    data: { endpoint: failing.id, reason: 'failing', recover: expect.stringContaining(failing.id) },
  });
  const row = await fixture.db
    .selectFrom('webhook_endpoints')
    .select(['status', 'disabled_reason'])
    .where('id', '=', failing.id)
    .executeTakeFirstOrThrow();
  expect(row).toEqual({ status: 'disabled', disabled_reason: 'failing' });
  // Events about an endpoint go only to the account's other endpoints.
  expect(fixture.receiver.at(failing.path)).toEqual([]);
  const ajv = new Ajv({ strict: false });
  for (const body of events()) {
    const type = body.type as 'endpoint.failing';
    const isValid = ajv.validate(EVENT_CATALOGUE[type].schema, body);
    expect(isValid, ajv.errorsText()).toBe(true);
  }
  expect(fixture.receiver.at(other.path).every(({ isVerified }) => isVerified)).toBe(true);
});
