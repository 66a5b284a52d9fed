import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hintForSymbol } from '../../../schemas/pill.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { makePill } from '../../../testing/pills.ts';
import { getPort } from '../../../testing/ports.ts';
import { startProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openPlatform, type Platform, venueRulesFile } from '../testing/api-platform.ts';
import { AnswerSchema } from './schemas.ts';

let platform: Platform;
/** Address of an API without ClickHouse, and with a venue for coins. */
let noHistoryBase: string;

const answers = Compile(AnswerSchema);

beforeAll(async () => {
  platform = await openPlatform({
    account: { tier: 'basic', callsPerDay: 100_000, ratePerS: 1_000, rateBurst: 1_000 },
  });
  noHistoryBase = await platform.startApi({
    CLICKHOUSE_URL: `http://127.0.0.1:${await getPort()}`,
    VENUE_RULES: await venueRulesFile({ suffix: { '-USDT': 'ALWAYS' } }),
  });
});

afterAll(() => platform?.close());

async function ask(query: string, of: Parameters<Platform['ask']>[1] = {}) {
  const answer = await platform.ask(`/api/market/verify?${query}`, of);
  if (answer.status === 200) expect([...answers.Errors(answer.body)], answer.text).toEqual([]);
  return answer;
}

let written = 0;
const counts = new Map<string, number>();
/** Number of pills written so far. */
const countOf = (symbol: string) => counts.get(symbol);

/** Writes pills with usual spreads of a test symbol, whose market is always open. */
async function write(symbol: string, count: number, fields: Parameters<typeof makePill>[0] = {}) {
  const pills = Array.from({ length: count }, () => {
    written += 1;
    const gross_spread_percent = 0.1 + (written % 10) / 100;
    return makePill({ symbol, id: `p${written}`, gross_spread_percent, ...fields });
  });
  counts.set(symbol, (counts.get(symbol) ?? 0) + count);
  const acks = await platform.write(pills);
  return pills.map((pill, at) => ({
    ...pill,
    cursor: formatCursor(acks[at]!.partition, acks[at]!.offset),
  }));
}

/** Repeats the request until the verdict is about this pill. */
const about = (query: string, cursor: string, of: Parameters<Platform['ask']>[1] = {}) =>
  waitFor(`the verdict about ${cursor}`, async () => {
    const { body } = await ask(query, of);
    return body.pill?.cursor === cursor && body;
  });

/** Reasons that come and go on a busy machine, where processes stand still for seconds. */
const OF_BUSY_MACHINES = ['pill_too_old', 'view_behind', 'log_unavailable'];

/**
 * Writes pills and asks about the last one, until the verdict comes within the five seconds in
 * which the pill is young: a busy machine may take longer.
 */
const aboutYoung = (
  symbol: string,
  of: Parameters<Platform['ask']>[1] = {},
  [count, fields]: [count: number, fields?: Parameters<typeof makePill>[0]] = [1],
) =>
  waitFor(`a verdict about a young pill of ${symbol}`, async () => {
    const last = (await write(symbol, count, fields)).at(-1)!;
    const body = await about(`symbol=${symbol}`, last.cursor, of);
    const codes = body.reasons.map(({ code }: { code: string }) => code);
    return !OF_BUSY_MACHINES.some((code) => codes.includes(code)) && { last, body };
  });

test('by symbol: verified for five seconds, then stale', async () => {
  await write('TEST:GOOD', 39);
  const { last, body } = await aboutYoung('TEST:GOOD');
  // In whole milliseconds: the generator is silent from 5 s after it.
  const receivedAt = 1_000 * Date.parse(body.generator.last_received_at);
  const { status, headers } = await ask('symbol=TEST:GOOD');
  expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
  expect(body).toMatchObject({
    subject: { symbol: 'TEST:GOOD' },
    verdict: 'verified',
    usable: true,
    reasons: [],
    valid_until: formatTimestamp(Math.min(last.timestamp, receivedAt) + 5_000_000),
    max_age_ms: 5_000,
    quiet: null,
    spread: { n: countOf('TEST:GOOD'), value: last.gross_spread_percent },
    market: { venue: null, now: 'open', basis: 'always_open' },
  });
  // The silence counts from the receive time, the age from the timestamp: either may come first.
  const stale = await waitFor('the pill to age and its symbol to be quiet', async () => {
    const { body } = await ask('symbol=TEST:GOOD');
    const codes = body.reasons.map(({ code }: { code: string }) => code);
    return codes.includes('pill_too_old') && body.quiet !== null && body;
  });
  expect(stale).toMatchObject({ verdict: 'stale', usable: false });
  expect(stale.quiet).toMatchObject({ reason: 'generator_late', expected_back: null });
});

test('an outlier, a halt and backfill are not usable', async () => {
  await write('TEST:ODD', 40);
  const verdict = async (fields: Parameters<typeof makePill>[0]) => {
    const { body } = await aboutYoung('TEST:ODD', {}, [1, fields]);
    return [body.verdict, body.usable, body.reasons[0].code];
  };
  expect(await verdict({ gross_spread_percent: 3 })).toEqual(['outlier', false, 'spread_outlier']);
  expect(await verdict({ market_state: 'halted' })).toEqual([
    ...(['disagrees', false, 'market_state_disagrees'] as const),
  ]);
  const [old] = await write('TEST:BACK', 1, { timestamp: Date.now() * 1000 - 3_600_000_000 });
  const body = await about('symbol=TEST:BACK', old!.cursor);
  expect(body.reasons.map(({ code }: { code: string }) => code)).toContain('pill_backfill');
});

test('a symbol without pills is unknown', async () => {
  const { status, body } = await ask('symbol=9999.T');
  expect(status).toBe(200);
  expect(body).toMatchObject({
    verdict: 'unknown',
    usable: false,
    pill: null,
    age_ms: null,
    spread: null,
    reasons: [{ code: 'no_pill', detail: 'No pill of 9999.T was ever received.' }],
    quiet: { reason: 'never_seen', since: null, expected_back: null },
  });
});

test('many symbols: each in data or in errors, none left out', async () => {
  await write('TEST:MANY', 35);
  const body = await waitFor('a verified pill', async () => {
    await aboutYoung('TEST:MANY');
    const answer = await ask('symbols=TEST:MANY,9999.T,bad');
    return answer.body.data['TEST:MANY'].verdict === 'verified' && answer.body;
  });
  expect(Object.keys(body.data)).toEqual(['TEST:MANY', '9999.T']);
  expect(body.errors).toEqual({ bad: { code: 'symbol_malformed', detail: hintForSymbol('bad') } });
  const names = Array.from({ length: 20 }, (_, n) => `S${n}.T`);
  expect(Object.keys((await ask(`symbols=${names}`)).body.data)).toEqual(names);
});

test.each([
  ['', 'missing'],
  ['symbol=x', 'symbol_malformed'],
  ['symbol=', 'symbol_malformed'],
  ['symbol=A.T&symbol=A.T', 'parameter_repeated'],
  ['symbol=A.T&symbols=A.T', 'parameters_exclusive'],
  ['symbols=A.T&id=1', 'parameters_exclusive'],
  ['symbols=A.T,,B.T', 'symbol_malformed'],
  ['symbols=', 'symbol_malformed'],
  [`symbols=${Array.from({ length: 21 }, (_, n) => `S${n}.T`)}`, 'too_many'],
  ['id=', 'id_malformed'],
  [`id=${'x'.repeat(129)}`, 'id_malformed'],
  ['id=%00', 'id_malformed'],
  ['id=%EF%BF%BD', 'id_malformed'],
  ["symbol='; DROP TABLE pills --", 'symbol_malformed'],
  ['symbol=A.T&at=1', 'parameter_unknown'],
])('?%s is 400 %s', async (query, code) => {
  const { status, body } = await ask(query);
  expect([status, body.code]).toEqual([400, 'parameter_invalid']);
  expect(body.errors.map((one: { code: string }) => one.code)).toContain(code);
});

describe('by id', () => {
  test('the newest pill: as by symbol; the previous one: superseded by the newest', async () => {
    const { first, second, newest } = await waitFor('a verdict about a young pill', async () => {
      const [first, second] = (await write('TEST:ID', 42)).slice(-2);
      const newest = await about(`symbol=TEST:ID&id=${second!.id}`, second!.cursor);
      return newest.verdict === 'verified' && { first, second, newest };
    });
    expect(newest).toMatchObject({
      subject: { symbol: 'TEST:ID', id: second!.id },
      published: true,
      is_latest: true,
      verdict: 'verified',
      usable: true,
      repeats: 0,
      conflicts: 0,
      spread: { n: countOf('TEST:ID') },
    });
    const { body } = await ask(`symbol=TEST:ID&id=${first!.id}`);
    const { checked_at, valid_until, ask_again_at, position, ...rest } = body;
    expect(rest).toEqual({
      subject: { symbol: 'TEST:ID', id: first!.id },
      published: true,
      verdict: 'stale',
      usable: false,
      reasons: [{ code: 'superseded', detail: 'TEST:ID has a newer pill', cursor: second!.cursor }],
      pill: {
        cursor: first!.cursor,
        id: first!.id,
        symbol: 'TEST:ID',
        market_state: 'open',
        timestamp: formatTimestamp(first!.timestamp),
        confidence: 87.5,
        gross_spread_percent: first!.gross_spread_percent,
        received_at: expect.any(String),
      },
      is_latest: false,
      repeats: 0,
      conflicts: 0,
    });
    expect([checked_at, position]).toEqual(Array(2).fill(expect.any(String)));
    // A superseded pill stays superseded.
    expect(Date.parse(valid_until) - Date.parse(checked_at)).toBe(86_400_000);
    expect(ask_again_at).toBe(valid_until);
  });

  test('repeats and conflicts are counted; the values are those of the first pill', async () => {
    const [pill] = await write('TEST:TWICE', 1);
    const { cursor, ...again } = pill!;
    await platform.write([again, again, makePill({ ...again, confidence: 1 })]);
    const body = await waitFor('the repeats', async () => {
      const answer = await ask(`symbol=TEST:TWICE&id=${pill!.id}`);
      return answer.body.conflicts === 1 && answer.body;
    });
    expect(body).toMatchObject({ repeats: 2, pill: { cursor, confidence: 87.5 } });
  });

  test('an id alone: every symbol that has it', async () => {
    const id = 'the-same id/of several';
    const [a] = await write('TEST:A', 1, { id });
    const [b] = await write('TEST:B', 1, { id });
    const query = `id=${encodeURIComponent(id)}`;
    const body = await waitFor('both symbols to be found', async () => {
      const answer = await ask(query);
      return answer.body.data.length === 2 && answer.body.complete && answer.body;
    });
    expect(body.data.map((one: { pill: { cursor: string } }) => one.pill.cursor)).toEqual([
      ...[a!.cursor, b!.cursor],
    ]);
    expect(body).toMatchObject({ complete: true, reasons: [] });
  });

  test('not published: only claimed if everything was searched', async () => {
    // On a busy machine ClickHouse may not answer in time; then nothing is claimed.
    const body = await waitFor('a search of everything', async () => {
      const answer = await ask('symbol=TEST:ID&id=nope');
      const [reason] = answer.body.reasons;
      if (reason.code === 'search_incomplete') expect(answer.body.published).toBeNull();
      return reason.code !== 'search_incomplete' && answer.body;
    });
    expect(body).toMatchObject({
      subject: { symbol: 'TEST:ID', id: 'nope' },
      published: false,
      verdict: 'unknown',
      reasons: [{ code: 'id_not_found', detail: 'not among pills up to position' }],
      position: expect.stringMatching(new RegExp(`^${platform.namespace.settings.epoch}:`)),
      searched_from: expect.any(String),
    });
    const withoutHistory = await ask('symbol=TEST:ID&id=nope', { base: noHistoryBase });
    expect(withoutHistory.body).toMatchObject({
      published: null,
      verdict: 'unknown',
      reasons: [{ code: 'search_incomplete' }],
    });
    const list = await ask('id=nope', { base: noHistoryBase });
    expect(list.body).toMatchObject({
      data: [],
      complete: false,
      reasons: [{ code: 'search_incomplete' }],
    });
  });
});

describe('never verified while a part it depends on is unavailable', () => {
  test('ClickHouse unavailable: 30 pills in the cache are enough, 29 are not', async () => {
    // Each attempt needs a symbol of its own, with 29 pills.
    const of = { base: noHistoryBase };
    let attempts = 0;
    const { few, body } = await waitFor('a verdict about a young pill', async () => {
      attempts += 1;
      const few = `TEST:FEW${attempts}`;
      const last = (await write(few, 29)).at(-1)!;
      const body = await about(`symbol=${few}`, last.cursor, of);
      return body.reasons[0].code === 'spread_history_unavailable' && { few, body };
    });
    expect(body.reasons).toEqual([
      {
        code: 'spread_history_unavailable',
        detail: '29 live pills, at least 30 are needed',
      },
    ]);
    expect(body.verdict).toBe('unknown');
    const { body: enough } = await aboutYoung(few, of);
    expect(enough).toMatchObject({ verdict: 'verified', spread: { n: countOf(few) } });
    // If history answers, these are known to be all pills of the symbol.
    const young = (await write('TEST:YOUNG', 3)).at(-1)!;
    await about('symbol=TEST:YOUNG', young.cursor);
    await waitFor('the window to be filled', async () => {
      const answer = await ask('symbol=TEST:YOUNG');
      return answer.body.reasons[0]?.code === 'spread_history_too_short';
    });
  });

  test('the latest processor is frozen: unknown, although the last pill is young', async () => {
    await write('TEST:LAG', 40);
    platform.latest.child.kill('SIGSTOP');
    try {
      const lagging = await waitFor('the lag to be reported', async () => {
        await write('TEST:LAG', 1);
        const { body } = await ask('symbol=TEST:LAG');
        return body.reasons.some(({ code }: { code: string }) => code === 'view_behind') && body;
      });
      expect([lagging.verdict, lagging.usable]).toEqual(['unknown', false]);
    } finally {
      platform.latest.child.kill('SIGCONT');
    }
    await waitFor('the recovery', async () => {
      const [pill] = await write('TEST:LAG', 1);
      const body = await about('symbol=TEST:LAG', pill!.cursor);
      return body.verdict === 'verified';
    });
  });
});

test('a market that never closes by VENUE_RULES: verified at any hour; unknown without the rule', async () => {
  const symbol = 'BTC-USDT';
  await write(symbol, 35);
  const verdict = await waitFor('a verified pill', async () => {
    const [pill] = await write(symbol, 1);
    const body = await about(`symbol=${symbol}`, pill!.cursor, { base: noHistoryBase });
    return body.verdict === 'verified' && body;
  });
  expect(verdict.market).toMatchObject({ venue: 'ALWAYS', now: 'open', basis: 'always_open' });
  const { body } = await ask(`symbol=${symbol}`);
  expect(body).toMatchObject({ verdict: 'unknown', market: { venue: null, basis: 'none' } });
  expect(body.reasons[0].code).toBe('venue_unknown');
});

test.each([
  ['gateway/api/main.js', 'API_PORT'],
  ['gateway/stream/main.js', 'STREAM_PORT'],
])('%s refuses to start with faulty rules and says why', async (entry, port) => {
  const rules = await venueRulesFile({ suffix: { '-USDT': 'NOWHERE' } });
  const process = await startProcess(entry, [], {
    ...platform.namespace.env,
    [port]: String(await getPort()),
    VENUE_RULES: rules,
  });
  expect(await process.exited).toBe(2);
  expect(process.output()).toMatch(/VENUE_RULES .* is faulty: suffix "-USDT": unknown venue\. /);
});

test('a request counts as one call and needs a key', async () => {
  const { headers } = await ask('symbols=TEST:A,TEST:B');
  expect(String(headers.ratelimit)).toMatch(/"daily";r=\d+/);
  expect((await ask('symbol=TEST:A', { key: 'pil_live_none' })).status).toBe(401);
});
