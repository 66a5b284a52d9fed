// What a call of history costs, who may make it, and which questions are refused.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signGrant } from '../../../lib/access/grant.ts';
import { readPepper } from '../../../lib/access/pepper.ts';
import { createTestAccount, type TestAccount } from '../../../lib/testing/accounts.ts';
import { makePill } from '../../../lib/testing/pills.ts';
import { partitionOf } from '../../../schemas/partition.ts';
import { HISTORY_LIMITS } from './limits.ts';
import { openWorld, type World } from './testing/world.ts';

const SYMBOL = '7203.T';
let world: World;
let partition: number;
let epoch: string;
let pepper: Buffer;
let pro: TestAccount;

beforeAll(async () => {
  world = await openWorld();
  ({ epoch } = world.namespace.settings);
  partition = partitionOf(SYMBOL, 3);
  pepper = readPepper(world.namespace.env.KEY_PEPPER_FILE!);
  pro = await createTestAccount(world.db, world.namespace, { tier: 'pro' });
  await world.write(Array.from({ length: 20 }, () => makePill({ symbol: SYMBOL })));
  await world.stored();
});

afterAll(() => world?.close());

const at = (offset: number) => `${partition}-${offset}`;
const nowS = () => Math.floor(Date.now() / 1000);

async function usedBy(key: string): Promise<number> {
  const { body } = await world.ask('/api/usage', {}, key);
  return body.today.used;
}

describe('tiers and cost', () => {
  test('Basic has no history; nobody gets it without a key', async () => {
    const basic = await createTestAccount(world.db, world.namespace, { tier: 'basic' });
    const refused = await world.ask({ symbol: SYMBOL, until: world.end() }, {}, basic.key);
    expect([refused.status, refused.body.code]).toEqual([403, 'tier_too_low']);
    expect(refused.body.needs).toBe('pro');
    const stranger = await world.ask({ until: world.end() }, {}, 'pil_live_none');
    expect([stranger.status, stranger.body.code]).toEqual([401, 'key_invalid']);
  });

  test('each page is a call, so are refused questions; the day ends it', async () => {
    const { key } = await createTestAccount(world.db, world.namespace, {
      ...{ tier: 'pro', callsPerDay: 6 },
    });
    const pages = await world.pages({ symbol: SYMBOL, until: world.end(), limit: 5 }, key);
    expect(pages).toHaveLength(4);
    expect((await world.ask({ limit: 0 }, {}, key)).status).toBe(400);
    expect(await usedBy(key)).toBe(5);
    await world.ask({ until: world.end() }, {}, key);
    const { status, body } = await world.ask({ until: world.end() }, {}, key);
    expect([status, body.code]).toEqual([429, 'daily_quota_exceeded']);
  });
});

describe('grants', () => {
  const grantFor = (accountId: string, expiresAtS = nowS() + 60) =>
    signGrant(
      { ...{ accountId, symbol: SYMBOL, epoch, after: at(3), until: at(15) } },
      expiresAtS,
      pepper,
    );
  const asked = () => ({ symbol: SYMBOL, epoch, after: at(3), until: at(15) });

  test('make every page of their range free, and be it with no call left', async () => {
    const poor = await createTestAccount(world.db, world.namespace, {
      ...{ tier: 'pro', callsPerDay: 1 },
    });
    expect((await world.ask(asked(), {}, poor.key)).status).toBe(200);
    const grant = grantFor(poor.id);
    const pages = await world.pages({ ...asked(), grant, limit: 5 }, poor.key);
    expect(pages.flatMap(({ body }) => body.data).map(({ cursor }) => cursor)).toEqual(
      Array.from({ length: 12 }, (_, n) => at(4 + n)),
    );
    expect(pages).toHaveLength(3);
    expect(await usedBy(poor.key)).toBe(1);
    expect((await world.ask(asked(), {}, poor.key)).status).toBe(429);
  });

  test('of all symbols of a partition, from its beginning', async () => {
    const grant = signGrant(
      { accountId: pro.id, symbol: '*', epoch, after: undefined, until: at(9) },
      nowS() + 60,
      pepper,
    );
    const before = await usedBy(pro.key);
    const { status, body } = await world.ask({ epoch, until: at(9), grant }, {}, pro.key);
    expect(status).toBe(200);
    expect(body.data).toHaveLength(10);
    expect(await usedBy(pro.key)).toBe(before);
  });

  test.each<[string, () => string, object, RegExp]>([
    ['forged', () => `${nowS() + 60}.${'A'.repeat(43)}`, {}, /not ours/],
    ['no grant at all', () => 'x', {}, /not ours/],
    ['of another account', () => grantFor('acc_other'), {}, /not for this account/],
    ['over', () => grantFor(pro.id, nowS() - 5), {}, /was over at 20\d\d-.*Z\.$/],
    ['its end put off', () => `${nowS() + 9}${grantFor(pro.id).slice(10)}`, {}, /not ours/],
    ['for an earlier range', () => grantFor(pro.id), { after: '1-2' }, /not for this account/],
    ['for a longer range', () => grantFor(pro.id), { until: '1-16' }, /not for this account/],
    ['for another epoch', () => grantFor(pro.id), { epoch: 'other' }, /not for this account/],
    ['by time', () => grantFor(pro.id), { from: '2026-01-01T00:00:00Z' }, /./],
  ])('%s: said so, and not counted', async (what, grant, change, detail) => {
    const before = await usedBy(pro.key);
    const { status, body } = await world.ask(
      { ...asked(), ...change, grant: grant() },
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

describe('questions that are refused', () => {
  const FROM = '2026-11-20T00:00:00Z';
  const e = () => ({ epoch });
  test.each<[string, () => Record<string, string | number> | string, string, string]>([
    ['nothing', () => ({}), 'from', 'missing'],
    ['a symbol alone', () => ({ symbol: SYMBOL }), 'from', 'missing'],
    ['time without a symbol', () => ({ from: FROM }), 'symbol', 'missing'],
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
    ['limit −1', () => ({ ...e(), limit: -1 }), 'limit', 'limit_out_of_range'],
    ['limit 0', () => ({ ...e(), limit: 0 }), 'limit', 'limit_out_of_range'],
    ['limit 1e9', () => ({ ...e(), limit: '1e9' }), 'limit', 'limit_out_of_range'],
    [
      'limit over the most',
      () => ({ ...e(), limit: HISTORY_LIMITS.pageMax + 1 }),
      'limit',
      'limit_out_of_range',
    ],
    [
      'limit twice',
      () => `/api/pills?epoch=${epoch}&limit=1&limit=2`,
      'limit',
      'parameter_repeated',
    ],
    ['an unknown parameter', () => ({ ...e(), since: 1 }), 'since', 'parameter_unknown'],
    ['a foreign format', () => ({ ...e(), format: 'xml' }), 'format', 'format_unknown'],
    ['SQL in symbol', () => ({ ...e(), symbol: "A' OR 1=1 --" }), 'symbol', 'symbol_malformed'],
    ['NUL in symbol', () => `/api/pills?epoch=${epoch}&symbol=A%00`, 'symbol', 'symbol_malformed'],
    ['all symbols by name', () => ({ ...e(), symbol: '*' }), 'symbol', 'symbol_malformed'],
    ['no cursor', () => ({ ...e(), after: '0-01' }), 'after', 'position_malformed'],
    [
      'an offset of 17 digits',
      () => ({ ...e(), after: '0-10000000000000000' }),
      'after',
      'position_malformed',
    ],
    ['a partition twice', () => ({ after: 'e1:0-1,0-2' }), 'after', 'position_malformed'],
    ['two epochs', () => ({ epoch: 'e1', after: 'e2:0-1' }), 'after', 'epochs_differ'],
    ['an epoch that is none', () => ({ epoch: 'E!' }), 'epoch', 'epoch_malformed'],
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
    ['no page of ours', () => ({ ...e(), page: 'abc' }), 'page', 'page_unknown'],
  ])('%s', async (_what, query, parameter, code) => {
    const { status, body, text } = await world.ask(query());
    expect([status, body.code], text).toEqual([400, 'parameter_invalid']);
    expect(
      body.errors.map((one: { parameter: string; code: string }) => [one.parameter, one.code]),
    ).toContainEqual([parameter, code]);
  });

  test('another log: told as such', async () => {
    for (const query of [
      { epoch: 'other', after: '0-1' },
      { after: 'other:0-1' },
      { epoch, after: '3-1' },
    ]) {
      const { status, body } = await world.ask(query);
      expect([status, body.code]).toEqual([410, 'position_unknown']);
    }
  });

  test('too long a time: what would fit, fits', async () => {
    const asked = { symbol: SYMBOL, from: '2026-09-01T00:00:00Z', to: '2026-11-20T00:00:00Z' };
    const { body } = await world.ask(asked);
    const fits = /to=(\S+) would fit/.exec(body.errors[0].detail)![1]!;
    expect((await world.ask({ ...asked, to: fits })).status).toBe(200);
  });

  test('a page belongs to its question, and is not to be changed', async () => {
    const asked = { symbol: SYMBOL, until: world.end(), limit: 5 };
    const { body } = await world.ask(asked);
    const next = new URLSearchParams(body.next.split('?')[1]);
    const page = next.get('page')!;
    const [payload, mac] = page.split('.') as [string, string];
    const state = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const forged = Buffer.from(JSON.stringify({ ...state, at: [partition, 0] })).toString(
      'base64url',
    );
    for (const query of [
      { ...asked, page: `${forged}.${mac}` },
      { ...asked, page: `${payload}.${'A'.repeat(43)}` },
      { ...asked, after: `${epoch}:${at(1)}`, page },
      { until: world.end(), page },
    ]) {
      const refused = await world.ask(query);
      expect([refused.status, refused.body.errors[0].code]).toEqual([400, 'page_unknown']);
    }
    // Size and form of the page may change.
    expect((await world.ask({ ...asked, limit: 2, page })).body.data).toHaveLength(2);
  });
});
