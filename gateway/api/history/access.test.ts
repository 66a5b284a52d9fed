// The cost of a call of history, the callers that may make it, and the requests that are refused.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signGapFillGrant } from '../../../domain/access/gap-fill-grant.ts';
import { type Pepper, readPepper } from '../../../domain/access/pepper.ts';
import { partitionOf } from '../../../schemas/partition.ts';
import { createTestAccount, type TestAccount } from '../../../testing/accounts.ts';
import { makePill } from '../../../testing/pills.ts';
import { HISTORY_LIMITS } from './limits.ts';
import { type HistoryFixture, openHistoryFixture } from './testing/history-fixture.ts';

const SYMBOL = '7203.T';
let fixture: HistoryFixture;
let partition: number;
let epoch: string;
let pepper: Pepper;
let pro: TestAccount;

beforeAll(async () => {
  fixture = await openHistoryFixture();
  ({ epoch } = fixture.namespace.settings);
  partition = partitionOf(SYMBOL, 3);
  pepper = readPepper(fixture.namespace.env.KEY_PEPPER_FILE!);
  pro = await createTestAccount(fixture.db, fixture.namespace, { tier: 'pro' });
  await fixture.write(Array.from({ length: 20 }, () => makePill({ symbol: SYMBOL })));
  await fixture.waitUntilStored();
});

afterAll(() => fixture?.close());

const at = (offset: number) => `${partition}-${offset}`;
const nowS = () => Math.floor(Date.now() / 1000);

async function usedBy(key: string): Promise<number> {
  const { body } = await fixture.ask('/api/usage', {}, key);
  return body.today.used;
}

describe('tiers and cost', () => {
  test('Basic has no history; no key, no history', async () => {
    const basic = await createTestAccount(fixture.db, fixture.namespace, { tier: 'basic' });
    const refused = await fixture.ask({ symbol: SYMBOL, until: fixture.end() }, {}, basic.key);
    expect([refused.status, refused.body.code]).toEqual([403, 'tier_too_low']);
    expect(refused.body.needs).toBe('pro');
    const stranger = await fixture.ask({ until: fixture.end() }, {}, 'pil_live_none');
    expect([stranger.status, stranger.body.code]).toEqual([401, 'key_malformed']);
  });

  test('each page is a call, and so is a refused request; the daily quota ends it', async () => {
    const { key } = await createTestAccount(fixture.db, fixture.namespace, {
      tier: 'pro',
      callsPerDay: 6,
    });
    const pages = await fixture.pages({ symbol: SYMBOL, until: fixture.end(), limit: 5 }, key);
    expect(pages).toHaveLength(4);
    expect((await fixture.ask({ limit: 0 }, {}, key)).status).toBe(400);
    expect(await usedBy(key)).toBe(5);
    await fixture.ask({ until: fixture.end() }, {}, key);
    const { status, body } = await fixture.ask({ until: fixture.end() }, {}, key);
    expect([status, body.code]).toEqual([429, 'daily_quota_exceeded']);
  });
});

describe('grants', () => {
  const grantFor = (accountId: string, expiresAtS = nowS() + 60) =>
    signGapFillGrant(
      { accountId, symbol: SYMBOL, epoch, after: at(3), until: at(15) },
      expiresAtS,
      pepper,
    );
  const range = () => ({ symbol: SYMBOL, epoch, after: at(3), until: at(15) });

  test('make every page of their range free, even with no calls left', async () => {
    const poor = await createTestAccount(fixture.db, fixture.namespace, {
      tier: 'pro',
      callsPerDay: 1,
    });
    expect((await fixture.ask(range(), {}, poor.key)).status).toBe(200);
    const grant = grantFor(poor.id);
    const pages = await fixture.pages({ ...range(), grant, limit: 5 }, poor.key);
    expect(pages.flatMap(({ body }) => body.data).map(({ cursor }) => cursor)).toEqual(
      Array.from({ length: 12 }, (_, n) => at(4 + n)),
    );
    expect(pages).toHaveLength(3);
    expect(await usedBy(poor.key)).toBe(1);
    expect((await fixture.ask(range(), {}, poor.key)).status).toBe(429);
  });

  test('may cover all symbols of a partition, from its beginning', async () => {
    const grant = signGapFillGrant(
      { accountId: pro.id, symbol: '*', epoch, after: undefined, until: at(9) },
      nowS() + 60,
      pepper,
    );
    const before = await usedBy(pro.key);
    const { status, body } = await fixture.ask({ epoch, until: at(9), grant }, {}, pro.key);
    expect(status).toBe(200);
    expect(body.data).toHaveLength(10);
    expect(await usedBy(pro.key)).toBe(before);
  });

  test.each<[string, () => string, object, RegExp]>([
    ['forged', () => `${nowS() + 60}.${'A'.repeat(43)}`, {}, /not valid/],
    ['not a grant', () => 'x', {}, /not valid/],
    ['of another account', () => grantFor('acc_other'), {}, /not for this account/],
    ['expired', () => grantFor(pro.id, nowS() - 5), {}, /expired at 20\d\d-.*Z\.$/],
    ['with a later expiry', () => `${nowS() + 9}${grantFor(pro.id).slice(10)}`, {}, /not valid/],
    ['for an earlier range', () => grantFor(pro.id), { after: '1-2' }, /not for this account/],
    ['for a longer range', () => grantFor(pro.id), { until: '1-16' }, /not for this account/],
    ['for another epoch', () => grantFor(pro.id), { epoch: 'other' }, /not for this account/],
    ['by time', () => grantFor(pro.id), { from: '2026-01-01T00:00:00Z' }, /./],
  ])('%s: refused, and not counted', async (what, grant, change, detail) => {
    const before = await usedBy(pro.key);
    const { status, body } = await fixture.ask(
      { ...range(), ...change, grant: grant() },
      {},
      pro.key,
    );
    if (what === 'by time') expect([status, body.code]).toEqual([400, 'parameter_invalid']);
    else {
      expect([status, body.code]).toEqual([403, 'grant_invalid']);
      expect(body.detail).toMatch(detail);
    }
    expect(await usedBy(pro.key)).toBe(before);
  });
});

describe('refused requests', () => {
  const FROM = '2026-11-20T00:00:00Z';
  const e = () => ({ epoch });
  test.each<[string, () => Record<string, string | number> | string, string, string]>([
    ['nothing', () => ({}), 'from', 'missing'],
    ['a symbol alone', () => ({ symbol: SYMBOL }), 'from', 'missing'],
    ['a time without a symbol', () => ({ from: FROM }), 'symbol', 'missing'],
    ['an end without a beginning', () => ({ symbol: SYMBOL, to: FROM }), 'from', 'missing'],
    ['both forms', () => ({ symbol: SYMBOL, from: FROM, ...e() }), 'epoch', 'parameters_exclusive'],
    ['a bare cursor without epoch', () => ({ after: '0-1' }), 'epoch', 'missing'],
    [
      'from > to',
      () => ({ symbol: SYMBOL, from: FROM, to: '2026-11-19T00:00:00Z' }),
      'to',
      'range_backwards',
    ],
    [
      'no zone',
      () => ({ symbol: SYMBOL, from: '2026-11-20T00:00:00' }),
      'from',
      'timestamp_no_zone',
    ],
    ['a date alone', () => ({ symbol: SYMBOL, from: '2026-11-20' }), 'from', 'timestamp_malformed'],
    [
      '32 days',
      () => ({ symbol: SYMBOL, from: '2026-09-01T00:00:00Z', to: '2026-10-03T00:00:00Z' }),
      'to',
      'range_too_large',
    ],
    [
      'from long ago, to now',
      () => ({ symbol: SYMBOL, from: '2020-01-01T00:00:00Z' }),
      'to',
      'range_too_large',
    ],
    ['limit −1', () => ({ ...e(), limit: -1 }), 'limit', 'out_of_range'],
    ['limit 0', () => ({ ...e(), limit: 0 }), 'limit', 'out_of_range'],
    ['limit 1e9', () => ({ ...e(), limit: '1e9' }), 'limit', 'not_an_integer'],
    [
      'limit above the maximum',
      () => ({ ...e(), limit: HISTORY_LIMITS.pageMax + 1 }),
      'limit',
      'out_of_range',
    ],
    [
      'limit twice',
      () => `/api/pills?epoch=${epoch}&limit=1&limit=2`,
      'limit',
      'parameter_repeated',
    ],
    ['an unknown parameter', () => ({ ...e(), since: 1 }), 'since', 'parameter_unknown'],
    ['a foreign format', () => ({ ...e(), format: 'xml' }), 'format', 'not_a_choice'],
    ['SQL in symbol', () => ({ ...e(), symbol: "A' OR 1=1 --" }), 'symbol', 'symbol_malformed'],
    ['NUL in symbol', () => `/api/pills?epoch=${epoch}&symbol=A%00`, 'symbol', 'symbol_malformed'],
    ['all symbols by name', () => ({ ...e(), symbol: '*' }), 'symbol', 'symbol_malformed'],
    ['not a cursor', () => ({ ...e(), after: '0-01' }), 'after', 'position_malformed'],
    [
      'an offset of 17 digits',
      () => ({ ...e(), after: '0-10000000000000000' }),
      'after',
      'position_malformed',
    ],
    ['a partition twice', () => ({ after: 'e1:0-1,0-2' }), 'after', 'position_malformed'],
    ['two epochs', () => ({ epoch: 'e1', after: 'e2:0-1' }), 'after', 'epochs_differ'],
    ['not an epoch', () => ({ epoch: 'E!' }), 'epoch', 'epoch_malformed'],
    [
      'two partitions',
      () => ({ ...e(), after: '0-1', until: '1-2' }),
      'until',
      'partitions_differ',
    ],
    [
      'another partition than the symbol’s',
      () => ({ ...e(), symbol: SYMBOL, after: '0-1' }),
      'after',
      'partition_wrong',
    ],
    ['after > until', () => ({ ...e(), after: at(9), until: at(8) }), 'until', 'range_backwards'],
    ['not a page token', () => ({ ...e(), page: 'abc' }), 'page', 'page_unknown'],
  ])('%s', async (_what, query, parameter, code) => {
    const { status, body, text } = await fixture.ask(query());
    expect([status, body.code], text).toEqual([400, 'parameter_invalid']);
    expect(
      body.errors.map((one: { parameter: string; code: string }) => [one.parameter, one.code]),
    ).toContainEqual([parameter, code]);
  });

  test('another log or partition: position_unknown', async () => {
    for (const query of [
      { epoch: 'other', after: '0-1' },
      { after: 'other:0-1' },
      { epoch, after: '3-1' },
    ]) {
      const { status, body } = await fixture.ask(query);
      expect([status, body.code]).toEqual([410, 'position_unknown']);
    }
  });

  test('a time range that is too long: the suggested range fits', async () => {
    const range = { symbol: SYMBOL, from: '2026-09-01T00:00:00Z', to: '2026-11-20T00:00:00Z' };
    const { body } = await fixture.ask(range);
    const fits = /to=(\S+) would fit/.exec(body.errors[0].detail)![1]!;
    expect((await fixture.ask({ ...range, to: fits })).status).toBe(200);
  });

  test('a page token is bound to its range, and cannot be altered', async () => {
    const range = { symbol: SYMBOL, until: fixture.end(), limit: 5 };
    const { body } = await fixture.ask(range);
    const next = new URLSearchParams(body.next.split('?')[1]);
    const page = next.get('page')!;
    const [payload, mac] = page.split('.') as [string, string];
    const state = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const forged = Buffer.from(JSON.stringify({ ...state, at: [partition, 0] })).toString(
      'base64url',
    );
    for (const query of [
      { ...range, page: `${forged}.${mac}` },
      { ...range, page: `${payload}.${'A'.repeat(43)}` },
      { ...range, after: `${epoch}:${at(1)}`, page },
      { until: fixture.end(), page },
    ]) {
      const refused = await fixture.ask(query);
      expect([refused.status, refused.body.errors[0].code]).toEqual([400, 'page_unknown']);
    }
    // Page size and format may change.
    expect((await fixture.ask({ ...range, limit: 2, page })).body.data).toHaveLength(2);
  });
});
