import { afterAll, beforeAll, expect, test } from 'vitest';
import { countPillsInLog } from '../../../testing/ingest-process.ts';
import { makePill, openPillWriter } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import type { Platform } from '../testing/api-platform.ts';
import { type Generators, openGenerators, pillOf, tokenOf } from '../testing/generators.ts';

let generators: Generators;
let platform: Platform;

beforeAll(async () => {
  generators = await openGenerators(['desk1', 'desk2', 'desk3']);
  platform = generators.platform;
});

afterAll(() => generators?.close());

const post: Generators['post'] = (...of) => generators.post(...of);
const accepted: Generators['accepted'] = (...of) => generators.accepted(...of);

const ask = (name: string, to: string) =>
  platform.ask(`/api/generator/${to}`, {
    headers: { authorization: `Bearer ${tokenOf(name)}`, 'x-api-key': 'none' },
  });

/** The outcomes of all hours together, by reason `channel code/fault`. */
async function totalsOf(name: string): Promise<Record<string, number>> {
  const { status, body, text } = await ask(name, 'summary');
  expect(status, text).toBe(200);
  const totals: Record<string, number> = {};
  const add = (key: string, count: number) => {
    if (count > 0) totals[key] = (totals[key] ?? 0) + count;
  };
  for (const { hour: _, source, reasons, ...counts } of body.data) {
    expect(source).toBe(name);
    for (const [key, count] of Object.entries(counts)) add(key, count as number);
    for (const { channel, code, fault, count } of reasons) {
      add(`${channel} ${code}${fault === '' ? '' : `/${fault}`}`, count);
    }
  }
  return totals;
}

/** Waits until the totals are these, and shows the last ones if they never are. */
async function expectTotals(name: string, expected: object): Promise<void> {
  let last: object = {};
  const isEqual = () => {
    const sorted = (of: object) => JSON.stringify(Object.entries(of).sort());
    return sorted(last) === sorted(expected);
  };
  await waitFor('the totals', async () => {
    last = await totalsOf(name);
    return isEqual();
  }).catch(() => undefined);
  expect(last).toEqual(expected);
}

test('a generator sees what became of each of its pills, and of nobody else', async () => {
  const [first, old] = [pillOf(), pillOf({ timestamp: '2026-01-01T00:00:00Z' })];
  await accepted('desk1', first);
  await accepted('desk1', old);
  expect((await post('desk1', first)).headers['idempotent-replayed']).toBe('true');
  expect((await post('desk1', { ...first, confidence: 1 })).status).toBe(409);
  expect((await post('desk1', { ...first, id: undefined })).status).toBe(400);
  expect((await post('desk1', '{', '', { 'content-type': 'text/plain' })).status).toBe(415);
  expect((await post('desk1', '[]', '/batch')).status).toBe(400);
  const rows = [first, { ...first, confidence: 2 }, { nonsense: true }];
  expect((await post('desk1', rows, '/batch')).body).toMatchObject({ replayed: 1, refused: 2 });
  // Direct producers may name the source: a repeat, a conflict, and bytes of nobody.
  const record = makePill({ source: 'desk1' });
  const [again, conflict] = [{ ...record }, { ...record, confidence: 3 }];
  await platform.write([record, again, conflict]);
  const writer = await openPillWriter(platform.namespace);
  await writer.writeRaw(0, 'X', Buffer.from('not avro'));
  await writer.close();

  await expectTotals('desk1', {
    accepted: 3,
    backfill: 1,
    late: 1,
    repeated: 3,
    refused: 6,
    rejected: 1,
    'http id_conflict': 1,
    'http id_conflict/id_conflict': 1,
    'http pill_invalid/missing_field': 1,
    'http pill_invalid/unknown_field': 1,
    'http media_type_unsupported': 1,
    'http batch_invalid/batch_empty': 1,
    'log id_conflict': 1,
  });
  expect(await totalsOf('desk2')).toEqual({});

  const page = await ask('desk1', 'rejected?limit=4');
  const rest = await ask('desk1', page.body.next.replace('/api/generator/', ''));
  const all = [...page.body.data, ...rest.body.data];
  expect([page.body.data.length, rest.body.next]).toEqual([4, null]);
  expect(new Set(all.map(({ origin }) => origin)).size).toBe(all.length);
  expect(all.map(({ at }) => at)).toEqual(
    all
      .map(({ at }) => at)
      .sort()
      .reverse(),
  );
  const of = (code: string, channel: string) =>
    all.filter((row) => row.code === code && row.channel === channel);
  expect(of('pill_invalid', 'http').map(({ body }) => JSON.parse(body))).toEqual(
    expect.arrayContaining([{ nonsense: true }]),
  );
  expect(of('id_conflict', 'log')).toMatchObject([{ source: 'desk1' }]);
  expect(of('media_type_unsupported', 'http')).toEqual([]); // the body was not read
  expect((await ask('desk2', 'rejected')).body).toEqual({ data: [], next: null });
  const filtered = await ask('desk1', 'rejected?channel=log&source=desk2');
  expect(filtered.body.data.map(({ source }: { source: string }) => source)).toEqual(['desk1']);
});

test('a credential is required, where there are credentials', async () => {
  const refusedAs = async (headers: Record<string, string>) => {
    const { status, body } = await platform.ask('/api/generator/summary', { headers });
    return [status, body.code];
  };
  expect(await refusedAs({})).toEqual([401, 'credential_missing']);
  const wrong = { authorization: `Bearer ${tokenOf('nobody')}` };
  expect(await refusedAs(wrong)).toEqual([403, 'credential_invalid']);

  const all = { base: await platform.startApi({}) };
  const { body } = await platform.ask('/api/generator/rejected?channel=log', all);
  expect(new Set(body.data.map(({ source }: { source: string }) => source))).toEqual(
    new Set(['desk1', '']),
  );
  const off = await platform.startApi({ PUBLIC_URL: 'https://api.test' });
  const answer = await platform.ask('/api/generator/rejected', { base: off });
  expect([answer.status, answer.body.code]).toEqual([503, 'generator_credentials_off']);
});

test.each([
  ['summary?from=2026-01-01T00:00:00Z', 'range_too_large'],
  ['summary?from=yesterday', 'timestamp_malformed'],
  ['rejected?before=7', 'page_unknown'],
])('%s is refused as %s', async (to, code) => {
  const { status, body } = await ask('desk1', to);
  expect([status, body.errors?.[0]?.code]).toEqual([400, code]);
});

test('a dry run answers what would happen, and neither stores nor counts', async () => {
  const before = await countPillsInLog(platform.namespace);
  const pill = pillOf();
  const dry = (body: unknown, to = '') => post('desk2', body, `${to}?validate_only=true`);
  expect(await dry(pill)).toMatchObject({
    status: 200,
    body: { validate_only: true, stored: 'no', outcome: 'accepted', backfill: false, late: null },
  });
  const odd = { ...pill, timestamp: '2026-01-01T00:00:00Z', market_state: 'siesta' };
  expect(await dry(odd)).toMatchObject({
    status: 200,
    headers: { 'pill-warning': 'market_state_unknown, very_old' },
    body: {
      ...{ outcome: 'accepted', backfill: true },
      warnings: ['market_state_unknown', 'very_old'],
    },
  });
  expect((await dry({ ...pill, confidence: 101 })).body).toMatchObject({ code: 'pill_invalid' });
  const rows = [pill, pill, { ...pill, confidence: 1 }, {}, odd];
  const { results } = (await dry(rows, '/batch')).body;
  expect(results).toMatchObject([
    { index: 0, outcome: 'accepted', warnings: [] },
    { index: 1, outcome: 'repeated' },
    { index: 2, status: 'refused', errors: [{ code: 'id_conflict' }] },
    { index: 3, status: 'refused' },
    { index: 4 },
  ]);
  expect(await countPillsInLog(platform.namespace)).toBe(before);

  const typos = [
    ['?validate_only=yes', 'not_a_choice'],
    ['?validateonly=true', 'parameter_unknown'],
    ['?validate_only=true&x=1', 'parameter_unknown'],
    ['?validate_only=true&validate_only=true', 'parameter_repeated'],
  ] as const;
  for (const [typo, code] of typos) {
    const { status, body } = await post('desk2', pill, typo);
    expect([status, body.code, body.stored], typo).toEqual([400, 'parameter_invalid', 'no']);
    expect(body.errors).toMatchObject([{ code }]);
  }
  expect(await countPillsInLog(platform.namespace)).toBe(before);
  const stored = await accepted('desk2', pill);
  expect(stored.headers['pill-warning']).toBeUndefined();
  expect((await dry(pill)).body).toMatchObject({ outcome: 'repeated' });
  expect((await dry({ ...pill, confidence: 1 })).status).toBe(409);
  const warned = await accepted('desk2', { ...odd, id: `${odd.id}-2` });
  expect([warned.text, warned.headers['pill-warning']]).toEqual([
    '{"status":"ok"}',
    'market_state_unknown, very_old',
  ]);
  await expectTotals('desk2', {
    accepted: 2,
    late: 1,
    backfill: 1,
    refused: 4,
    'http parameter_invalid': 4,
  });
});

test('counts stay exact over a stop, and a kill after the report', async () => {
  const refuseSome = async (count: number) => {
    for (let at = 0; at < count; at += 1) expect((await post('desk3', {})).status).toBe(400);
  };
  const counted = (count: number) =>
    expectTotals('desk3', { refused: count, 'http pill_invalid/missing_field': count });
  await refuseSome(12);
  await generators.ingest().process.stop();
  await generators.restartIngest();
  await refuseSome(5);
  await counted(17);
  await generators.ingest().process.kill();
  await generators.restartIngest();
  await refuseSome(4);
  await counted(21);
});
