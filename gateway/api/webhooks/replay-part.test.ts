import { expect, test } from 'vitest';
import type { ListedEndpoint } from '../../../domain/webhooks/endpoints/endpoint-operations.ts';
import { SETTING_DEFAULTS } from '../../../domain/webhooks/endpoints/endpoint-settings.ts';
import type { History, Page } from '../history/history.ts';
import { type HistoryRow, pillOf } from '../history/history-pill.ts';
import type { PageState } from '../history/page-token.ts';
import { type ReplayAsk, type ReplayPart, readReplay } from './replay-part.ts';

const PARTITIONS = 2;
const OFFSETS = 11_000;
const AT = 1_800_000_000_000_000;

function rowAt(partition: number, offset: number): HistoryRow {
  const times = { at: AT + offset, received: AT + offset, ordered: AT + offset };
  const place = { epoch: 'k7', partition, offset, prev: null, late: false, backfill: false };
  return {
    ...times,
    ...place,
    id: `p-${offset}`,
    symbol: `S${partition}`,
    gross_spread_percent: 0.1,
    market_state: 'open',
    confidence: offset % 3 === 0 ? 1 : 0,
  };
}

const LOG = Array.from({ length: PARTITIONS }, (_, partition) =>
  Array.from({ length: OFFSETS }, (_, offset) => rowAt(partition, offset)),
).flat();

const MATCHING = LOG.filter(({ confidence }) => confidence === 1).map((row) => pillOf(row, 'k7'));

/** History in pages of these lengths: a page that used up its time is short. */
function historyOf(lengths: readonly number[]): History {
  let asked = 0;
  return {
    async byPosition({ state, limit }) {
      const [partition, offset] = state?.at ?? [0, -1];
      const from = partition * OFFSETS + offset + 1;
      const length = Math.min(limit, lengths[asked++ % lengths.length]!);
      const rows = LOG.slice(from, from + length);
      const isEnd = from + length >= LOG.length;
      const end = from + length - 1;
      const at = [Math.floor(end / OFFSETS), end % OFFSETS] as const;
      const position = `k7:0-${at[0] === 0 ? at[1] : OFFSETS - 1}${at[0] === 0 ? '' : `,1-${at[1]}`}`;
      const next = isEnd ? undefined : { at, stored: null };
      const page = { rows, next, position, asOf: {} as Page['asOf'], isFinal: true };
      return { ...page, statement: { query: '', params: {} } };
    },
    byTime: () => Promise.reject(new Error('not asked by time')),
    bytes: () => Promise.reject(new Error('not asked for bytes')),
  };
}

const endpoint = {
  id: 'whe_aaaaaaaaaaaa',
  accountId: 'acc_a',
  filter: { ...SETTING_DEFAULTS, minConfidence: 1 },
} as unknown as ListedEndpoint;
const question: ReplayAsk['question'] = {
  kind: 'position',
  symbol: undefined,
  epoch: 'k7',
  isGranted: false,
  after: undefined,
  until: { kind: 'position', offsets: new Map() },
};

async function parts(history: History, text = 'a range'): Promise<ReplayPart[]> {
  const all: ReplayPart[] = [];
  let state: PageState | undefined;
  do {
    const part = await readReplay(history, { endpoint, question, text, state, epoch: 'k7' });
    if (!('messages' in part)) throw new Error(part[0]);
    all.push(part);
    state = part.next;
  } while (state !== undefined);
  return all;
}

const idsOf = (all: readonly ReplayPart[]) =>
  all.flatMap(({ messages }) => messages.map(({ id }) => id));
const cursorsOf = (all: readonly ReplayPart[]) =>
  all.flatMap(({ messages }) =>
    messages.flatMap(({ body }) =>
      JSON.parse(body).data.pills.map(({ cursor }: { cursor: string }) => cursor),
    ),
  );

test('messages are the same wherever pages end', async () => {
  const whole = await parts(historyOf([5_000]));
  const expected = MATCHING.map(({ cursor }) => cursor);
  expect(cursorsOf(whole)).toEqual(expected);
  for (const lengths of [[2_000], [1_701, 3_333], [4_999, 1]]) {
    const split = await parts(historyOf(lengths));
    expect(split.length).toBeGreaterThan(1);
    expect(cursorsOf(split)).toEqual(expected);
    expect(idsOf(split)).toEqual(idsOf(whole));
  }
});

test('the position of a part is where its messages end, even if its page extends further', async () => {
  const read = await parts(historyOf([3_333]));
  let seen = 0;
  for (const [at, part] of read.entries()) {
    seen += part.pills;
    if (at === read.length - 1) break;
    const last = MATCHING[seen - 1]!.cursor;
    const isInFirst = last.startsWith('0-');
    expect(part.position).toBe(isInFirst ? `k7:${last}` : `k7:0-${OFFSETS - 1},${last}`);
  }
  expect(read.length).toBeGreaterThan(2);
});

test('another range or filter makes other messages', async () => {
  const ids = idsOf(await parts(historyOf([5_000])));
  const others = idsOf(await parts(historyOf([5_000]), 'another range'));
  expect(others).toHaveLength(ids.length);
  expect(others.filter((id) => ids.includes(id))).toEqual([]);
});
