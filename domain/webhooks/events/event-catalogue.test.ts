import { Ajv } from 'ajv';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../../testing/database-namespace.ts';
import { newId } from '../../access/id.ts';
import { applyBillingEvent } from '../../accounts/billing.ts';
import type { BillingEvent } from '../../accounts/billing-provider.ts';
import { insertCheckout } from '../../accounts/checkouts.ts';
import { raiseReminders } from '../../accounts/reminders.ts';
import { payCheckout } from '../../accounts/test-billing.ts';
import {
  EVENT_CATALOGUE,
  EVENT_TYPES,
  type EventEntry,
  type MessageType,
} from './event-catalogue.ts';
import { eventMessage, joinedMessage, pillMessage, postedPill } from './webhook-message.ts';

const DAY_MS = 86_400_000;
const ajv = new Ajv({ strict: true, allErrors: true });
const validators = new Map(
  Object.values<EventEntry>(EVENT_CATALOGUE).map(({ type, schema }) => [type, ajv.compile(schema)]),
);

/** Faults of a body by the schema of its type. */
function faultsOf(body: unknown): unknown {
  const validate = validators.get((body as { type: MessageType }).type)!;
  return validate(body) ? [] : validate.errors;
}

describe('the catalogue', () => {
  test('has every type that may be posted, and no other', () => {
    const types = [...EVENT_TYPES, 'pills.published', 'endpoint.test'].sort();
    expect(Object.keys(EVENT_CATALOGUE).sort()).toEqual(types);
  });

  test.each(Object.values<EventEntry>(EVENT_CATALOGUE))('$type: example and schema', (entry) => {
    expect(faultsOf(entry.example)).toEqual([]);
    expect(entry.example.type).toBe(entry.type);
    expect(entry.raised).toMatch(/^[A-Z0-9].*\.$/);
    expect(entry.advice).toMatch(/^[A-Z].*\.$/);
    // Strict: no further or missing member, at either level.
    const { example } = entry;
    expect(faultsOf({ ...example, more: 1 })).not.toEqual([]);
    expect(faultsOf({ ...example, data: { ...example.data, more: 1 } })).not.toEqual([]);
    expect(faultsOf({ ...example, timestamp: '2026-11-20T01:02:03Z' })).not.toEqual([]);
    const optional = new Set(['late', 'backfill', 'replayed']);
    for (const name of Object.keys(example.data).filter((member) => !optional.has(member))) {
      const { [name as keyof typeof example.data]: _, ...rest } = example.data;
      expect(faultsOf({ ...example, data: rest }), name).not.toEqual([]);
    }
  });
});

describe('bodies of pills', () => {
  const pill = {
    ...{ partition: 3, offset: 132, prev: 131, id: 'p-10', symbol: '7203.T' },
    ...{ timestamp: 1_763_600_523_004_000, received_at: 1_763_600_523_011_000 },
    ...{ gross_spread_percent: -0.12, market_state: 'open', confidence: 0.88 },
    ...{ late: false, backfill: false },
  };

  test('one, and several', () => {
    const plain = postedPill('k7f3', pill);
    const flagged = postedPill('k7f3', { ...pill, prev: null, late: true, backfill: true });
    const bodies = [
      pillMessage('k7f3', plain).body,
      pillMessage('k7f3', flagged).body,
      joinedMessage('msg_1', [plain, flagged]).body,
      joinedMessage('msg_1', [plain], { replayed: true }).body,
    ].map((body) => JSON.parse(body));
    for (const body of bodies) expect(faultsOf(body)).toEqual([]);
    expect(bodies[3].data.replayed).toBe(true);
  });
});

describe('events of accounts as PostgreSQL stores them', () => {
  let namespace: DatabaseNamespace;
  let db: Database;

  beforeAll(async () => {
    namespace = await createDatabaseNamespace();
    db = openTestDatabase(namespace);
  });
  afterAll(async () => {
    await db?.destroy();
  });

  const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);

  /** Bodies of all events of an account, as a dispatcher would make them. */
  async function bodiesOf(accountId: string) {
    const rows = await db
      .selectFrom('account_events')
      .select(['type', 'data'])
      .where('account_id', '=', accountId)
      .orderBy('id')
      .execute();
    return rows.map(({ type, data }) =>
      JSON.parse(
        eventMessage('msg', type as MessageType, data as Record<string, unknown>, Date.now() * 1e3)
          .body,
      ),
    );
  }

  async function expectBodies(accountId: string, types: readonly MessageType[]) {
    const bodies = await bodiesOf(accountId);
    expect(bodies.map(({ type }) => type)).toEqual(types);
    for (const body of bodies) expect(faultsOf(body)).toEqual([]);
    return bodies;
  }

  test('quota.warning: 80, 95 and 100 %', async () => {
    const { id } = await createTestAccount(db, namespace, { tier: 'basic', callsPerDay: 100 });
    for (const calls of [79, 1, 15, 5]) {
      await sql`SELECT * FROM take_calls(${[id]}::text[], ${[calls]}::int[], ${[100]}::int[])`.execute(
        db,
      );
    }
    const warnings = Array.from({ length: 3 }, () => 'quota.warning' as const);
    const bodies = await expectBodies(id, warnings);
    expect(bodies.map(({ data }) => data.percent)).toEqual([80, 95, 100]);
  });

  test('key.expiring', async () => {
    const { id, keyId } = await createTestAccount(db, namespace, { tier: 'pro' });
    for (const end of [inDays(6), new Date(Math.ceil(Date.now() / 1e3) * 1e3 + DAY_MS)]) {
      await db
        .updateTable('api_keys')
        .set({ created_at: inDays(-30), expires_at: end })
        .where('id', '=', keyId)
        .execute();
      await raiseReminders(db);
    }
    await expectBodies(id, ['key.expiring', 'key.expiring']);
  });

  test('payment.failed, payment.reminder, subscription.changed', async () => {
    const { id } = await createTestAccount(db, namespace, { tier: 'pro' });
    const setRow = (row: object) =>
      db.updateTable('subscriptions').set(row).where('account_id', '=', id).execute();
    await setRow({ updated_at: inDays(-3) });
    const apply = async (type: BillingEvent['type'], at: Date) => {
      const event = { provider: 'test', eventId: newId('evt'), type, accountId: id, at } as const;
      expect((await applyBillingEvent(db, event)).kind).toBe('applied');
    };
    await apply('payment.failed', inDays(-1.5));
    await raiseReminders(db);
    await apply('payment.succeeded', inDays(-1));
    await apply('subscription.ended', inDays(-0.5));
    const bodies = await expectBodies(id, [
      'payment.failed',
      'payment.reminder',
      'subscription.changed',
      'subscription.changed',
    ]);
    expect(bodies.map(({ data }) => data.status)).toEqual([
      undefined,
      undefined,
      'active',
      'ended',
    ]);
  });

  test('subscription.changed of a first subscription', async () => {
    const { id } = await createTestAccount(db, namespace, { tier: null });
    const by = { actor: 'user:usr_test', isVerified: true } as const;
    const begun = await insertCheckout(
      db,
      { name: 'test', canBuy: true },
      { ...by, accountId: id, tier: 'pro' },
    );
    if (begun.kind !== 'ok') throw new Error(begun.kind);
    expect(await payCheckout(db, begun.checkoutId, id, 'paid')).toEqual({ kind: 'ok' });
    const [body] = await expectBodies(id, ['subscription.changed']);
    expect(body.data).toMatchObject({ previous_tier: null, previous_status: null });
  });
});
