import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPepper } from '../../../domain/access/pepper.ts';
import { createSeal } from '../../../domain/access/sealing.ts';
import { secretBytes } from '../../../domain/webhooks/secrets/secret.ts';
import { openWebhookApi, type WebhookApi } from './testing/webhook-api.ts';

/** Secrets that must never appear in clear text anywhere. */
const SECRETS: string[] = [];
const CREDENTIAL = 'Bearer very-private-credential-of-a-customer';
let fixture: WebhookApi;

beforeAll(async () => {
  fixture = await openWebhookApi();
});

afterAll(() => fixture?.close());

test('at most three secrets overlap; without an overlap all others end at once', async () => {
  const customer = await fixture.customerOf('pro');
  const { endpoint, secret } = await fixture.createEndpoint(customer);
  const to = `/api/webhooks/${endpoint.id}/rotate-secret`;
  const seal = createSeal(readPepper(fixture.namespace.env.KEY_PEPPER_FILE!));
  const inForce = async () => {
    const rows = await fixture.db
      .selectFrom('webhook_secrets')
      .select('sealed')
      .where('endpoint_id', '=', endpoint.id)
      .where(sql<boolean>`coalesce(expires_at > now(), true)`)
      .orderBy('id', 'desc')
      .execute();
    return rows.map(({ sealed }) => String(seal.open(sealed, endpoint.id)));
  };
  const keyOf = (text: string) => String(secretBytes(text));
  const second = await customer.send('POST', to, {});
  const third = await customer.send('POST', to, { overlap_s: 3_600 });
  const texts = [third.body.secret, second.body.secret, secret];
  SECRETS.push(...texts);
  expect(await inForce()).toEqual(texts.map(keyOf));
  expect(third.body.in_force).toHaveLength(3);
  expect(third.body.in_force[0].expires_at).toBeNull();
  const full = await customer.send('POST', to, { overlap_s: 60 });
  expect([full.status, full.body.code]).toEqual([409, 'webhook_secret_limit']);
  expect(full.body.in_force).toHaveLength(3);
  expect(await inForce()).toEqual(texts.map(keyOf));
  const last = await customer.send('POST', to, { overlap_s: 0 });
  SECRETS.push(last.body.secret);
  expect(await inForce()).toEqual([keyOf(last.body.secret)]);
  expect(last.body.in_force).toHaveLength(1);
  const actions = (await fixture.auditOf(customer)).map(({ action }) => action);
  expect(actions.filter((action) => action === 'webhook.secret_rotated')).toHaveLength(3);
});

test('no secret is in clear text in the database, the audit log or the output of the process', async () => {
  const customer = await fixture.customerOf('pro');
  SECRETS.push(
    (await fixture.createEndpoint(customer, { headers: { Authorization: CREDENTIAL } })).secret,
  );
  const tables = [
    'webhook_endpoints',
    'webhook_secrets',
    'webhook_deliveries',
    'audit_log',
  ] as const;
  const texts = await Promise.all(
    tables.map(async (table) => {
      const rows = await fixture.db.selectFrom(table).selectAll().execute();
      return JSON.stringify(rows, (_, value) =>
        value?.type === 'Buffer' ? Buffer.from(value.data).toString('latin1') : value,
      );
    }),
  );
  const written = [...texts, fixture.api.output()];
  expect(SECRETS.length).toBeGreaterThanOrEqual(4);
  for (const text of written) {
    expect(text.length).toBeGreaterThan(100);
    expect(text).not.toContain(CREDENTIAL);
    for (const secret of SECRETS) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(secretBytes(secret).toString('latin1'));
    }
  }
  // A URL may contain a token: the database needs it, logs must not have it.
  for (const text of [texts[3], fixture.api.output()]) expect(text).not.toContain('in-the-url');
});
