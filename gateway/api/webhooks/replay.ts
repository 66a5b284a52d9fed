import { createHash } from 'node:crypto';
import type { ListedEndpoint } from '../../../lib/webhooks/endpoints.ts';
import {
  joinedFit,
  joinedMessage,
  type PillText,
  type WebhookMessage,
} from '../../../lib/webhooks/message.ts';
import { matches, wantsSymbol } from '../../../lib/webhooks/pill-filter.ts';
import { formatPosition, parseCursor, parsePosition } from '../../../schemas/position.ts';
import { type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import { type History, PAGE_UNKNOWN, type Page, type Refusal } from '../history/history.ts';
import type { PageState } from '../history/page-token.ts';
import type { PlaceQuestion, TimeQuestion } from '../history/question.ts';
import type { HistoryPill } from '../history/rows.ts';

export const REPLAY_LIMITS = {
  /** Pills of the range that one call looks at, and how many of them it reads at a time. */
  pillsMax: 10_000,
  pagePills: 5_000,
  /** Pills of one message. */
  joinedMax: 50,
} as const;

/** A part of a range, as messages. */
export interface ReplayPart {
  readonly messages: readonly WebhookMessage[];
  readonly pills: number;
  /** Of a range of the log: all up to there is among the messages, of this call or one before. */
  readonly position: string | undefined;
  /** Where the next call goes on; undefined: the range is done. */
  readonly next: PageState | undefined;
}

/** A pill that the endpoint wants, and where it stands. */
interface Wanted {
  readonly text: PillText;
  /** Where a page would go on after it. */
  readonly place: readonly [partition: number, offset: number];
  readonly key: readonly [order: Micros, epoch: string, offset: number];
}

export interface ReplayAsk {
  readonly endpoint: ListedEndpoint;
  readonly question: PlaceQuestion | TimeQuestion;
  /** The question as text: a part of the ids. */
  readonly text: string;
  readonly state: PageState | undefined;
  readonly epoch: string;
}

/**
 * Reads the next part of a range as messages. Their ids follow from endpoint, filter, range and
 * pills, and messages are cut by the pills of the range alone, wherever a page ends: a call that is
 * repeated makes the same ones. What is left over at the end of a part is the next one's.
 * @throws NoAnswer
 */
export async function readReplay(history: History, ask: ReplayAsk): Promise<ReplayPart | Refusal> {
  const { endpoint, epoch } = ask;
  const { pillsMax, pagePills } = REPLAY_LIMITS;
  const wanted: Wanted[] = [];
  let state = ask.state;
  let looked = 0;
  let page: Page;
  do {
    const read = await readPage(history, ask, state, Math.min(pagePills, pillsMax - looked));
    if (isRefusal(read)) return read;
    page = read;
    looked += page.data.length;
    for (const pill of page.data) {
      if (!wantsSymbol(endpoint.filter, pill.symbol)) continue;
      if (matches(endpoint.filter, { ...pill, backfill: pill.backfill === true })) {
        wanted.push(wantedOf(pill, epoch));
      }
    }
    state = page.next;
  } while (state !== undefined && looked < pillsMax && page.data.length > 0);
  const isEnd = page.next === undefined;
  const groups = groupsOf(wanted, isEnd);
  const messages = groups.map((group) => messageOf(ask, group));
  const pills = groups.reduce((sum, group) => sum + group.length, 0);
  const last = wanted[pills - 1];
  // Nothing is left over: the next part begins where the page has ended.
  if (isEnd || pills === wanted.length || last === undefined) {
    return { messages, pills, position: page.position, next: page.next };
  }
  const next = stateAfter(last, page.next!);
  return { messages, pills, position: positionAt(last, page, ask), next };
}

/** The history reader answers places with places, times with times. */
async function readPage(
  history: History,
  { endpoint, question }: ReplayAsk,
  state: PageState | undefined,
  limit: number,
): Promise<Page | Refusal> {
  const of = { limit, accountId: endpoint.accountId };
  if (question.kind === 'places') {
    if (state !== undefined && !('at' in state)) return PAGE_UNKNOWN;
    return history.places({ ...of, question, state });
  }
  if (state !== undefined && !('key' in state)) return PAGE_UNKNOWN;
  return history.times({ ...of, question, state });
}

function isRefusal(page: Page | Refusal): page is Refusal {
  return Array.isArray(page);
}

/** Full messages; before the end what does not fill one is left over, unless there is nothing else. */
function groupsOf(wanted: readonly Wanted[], isEnd: boolean): Wanted[][] {
  const groups: Wanted[][] = [];
  for (let at = 0; at < wanted.length; ) {
    const most = wanted.slice(at, at + REPLAY_LIMITS.joinedMax);
    const group = most.slice(0, joinedFit(most.map(({ text }) => text)));
    const isFull = group.length < most.length || most.length === REPLAY_LIMITS.joinedMax;
    if (!isFull && !isEnd && groups.length > 0) break;
    groups.push(group);
    at += group.length;
  }
  return groups;
}

function messageOf({ endpoint, text }: ReplayAsk, group: readonly Wanted[]): WebhookMessage {
  const named = [endpoint.id, endpoint.filter, text, group[0]!.key, group.at(-1)!.key];
  const hash = createHash('sha256').update(JSON.stringify([...named, group.length]));
  const id = `rep_${hash.digest('base64url').slice(0, 32)}`;
  return joinedMessage(
    id,
    group.map((one) => one.text),
    { replayed: true },
  );
}

function wantedOf(pill: HistoryPill, logEpoch: string): Wanted {
  const { epoch = logEpoch, ...fields } = pill;
  const json = JSON.stringify({ epoch, ...fields });
  const { partition, offset } = parseCursor(pill.cursor)!;
  const receivedAt = microsOf(pill.received_at);
  const text = { json, bytes: Buffer.byteLength(json), partition, offset, receivedAt };
  const order = Math.min(microsOf(pill.timestamp), receivedAt);
  return { text, place: [partition, offset], key: [order, epoch, offset] };
}

function stateAfter({ place, key }: Wanted, next: PageState): PageState {
  return 'at' in next ? { ...next, at: place } : { ...next, key };
}

/** What was handed over when a part ends before its page: partitions come one after another. */
function positionAt(last: Wanted, page: Page, { question }: ReplayAsk): string | undefined {
  const told = page.position === undefined ? undefined : parsePosition(page.position);
  if (told === undefined || question.kind !== 'places') return undefined;
  const [partition, offset] = last.place;
  const { after, until, symbol } = question;
  const isOfOne = symbol !== undefined || after?.kind === 'cursor' || until?.kind === 'cursor';
  const offsets = new Map(told.offsets);
  for (const later of told.offsets.keys()) {
    if (isOfOne || later <= partition) continue;
    const start = after?.kind === 'position' ? after.offsets.get(later) : undefined;
    if (start === undefined) offsets.delete(later);
    else offsets.set(later, start);
  }
  return formatPosition(told.epoch, offsets.set(partition, offset));
}

function microsOf(text: string): Micros {
  const parsed = parseTimestamp(text);
  if (!parsed.ok) throw new Error(`History has a time that is none: ${text}`);
  return parsed.micros;
}
