import { createHash } from 'node:crypto';
import {
  includesSymbol,
  passesEndpoint,
} from '../../../domain/webhooks/endpoints/endpoint-filter.ts';
import type { ListedEndpoint } from '../../../domain/webhooks/endpoints/endpoint-operations.ts';
import {
  countFitting,
  joinedMessage,
  type PostedPill,
  type WebhookMessage,
} from '../../../domain/webhooks/events/webhook-message.ts';
import { formatPosition, parseCursor, parsePosition } from '../../../schemas/position.ts';
import type { PublicPill } from '../../../schemas/public-pill.ts';
import { type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import type { Refusal } from '../../http/problems.ts';
import { type History, PAGE_UNKNOWN, type Page } from '../history/history.ts';
import { pillOf } from '../history/history-pill.ts';
import type { PositionRange, TimeRange } from '../history/history-query.ts';
import type { PageState } from '../history/page-token.ts';

export const REPLAY_LIMITS = {
  /** Pills of the range that one call reads, and how many of them at a time. */
  pillsMax: 10_000,
  pagePills: 5_000,
  /** Pills of one message. */
  joinedMax: 50,
} as const;

/** A part of a range, as messages. */
export interface ReplayPart {
  readonly messages: readonly WebhookMessage[];
  readonly pills: number;
  /** For a range of the log: this and earlier calls have covered everything up to here. */
  readonly position: string | undefined;
  /** Where the next call continues; undefined: the range is done. */
  readonly next: PageState | undefined;
}

/** A pill that matches the endpoint's filter, with its position. */
interface MatchedPill {
  readonly text: PostedPill;
  /** Where a page continues after the pill. */
  readonly cursor: readonly [partition: number, offset: number];
  readonly key: readonly [order: Micros, epoch: string, offset: number];
}

export interface ReplayAsk {
  readonly endpoint: ListedEndpoint;
  readonly question: PositionRange | TimeRange;
  /** The query as text, which is part of the message ids. */
  readonly text: string;
  readonly state: PageState | undefined;
  readonly epoch: string;
}

/**
 * Reads the next part of a range as messages. Their ids follow from endpoint, filter, range and
 * pills, and their boundaries depend only on the pills of the range, not on page ends: a repeated
 * call makes the same messages. Pills left over at the end of a part belong to the next part.
 * @throws QueryError
 */
export async function readReplay(history: History, ask: ReplayAsk): Promise<ReplayPart | Refusal> {
  const { endpoint, epoch } = ask;
  const { pillsMax, pagePills } = REPLAY_LIMITS;
  const matched: MatchedPill[] = [];
  let state = ask.state;
  let read = 0;
  let page: Page;
  do {
    const answer = await readPage(history, ask, state, Math.min(pagePills, pillsMax - read));
    if ('length' in answer) return answer;
    page = answer;
    read += page.rows.length;
    for (const row of page.rows) {
      const pill = pillOf(row, epoch);
      if (!includesSymbol(endpoint.filter, pill.symbol)) continue;
      if (passesEndpoint(endpoint.filter, { ...pill, backfill: pill.backfill === true })) {
        matched.push(matchedPill(pill, epoch));
      }
    }
    state = page.next;
  } while (state !== undefined && read < pillsMax && page.rows.length > 0);
  const isEnd = page.next === undefined;
  const groups = groupsOf(matched, isEnd);
  const messages = groups.map((group) => messageOf(ask, group));
  const pills = groups.reduce((sum, group) => sum + group.length, 0);
  const last = matched[pills - 1];
  // No pill is left over, so the next part begins where the page ended.
  if (isEnd || pills === matched.length || last === undefined) {
    // A range by time has no position: only its last page would know it.
    const position = ask.question.kind === 'position' ? page.position : undefined;
    return { messages, pills, position, next: page.next };
  }
  const next = stateAfter(last, page.next!);
  return { messages, pills, position: positionAt(last, page, ask), next };
}

/** Reads one page of history, by position or by time as the query requires. */
async function readPage(
  history: History,
  { endpoint, question }: ReplayAsk,
  state: PageState | undefined,
  limit: number,
): Promise<Page | Refusal> {
  const of = { limit, accountId: endpoint.accountId };
  if (question.kind === 'position') {
    if (state !== undefined && !('at' in state)) return PAGE_UNKNOWN;
    return history.byPosition({ ...of, range: question, state });
  }
  if (state !== undefined && !('key' in state)) return PAGE_UNKNOWN;
  return history.byTime({ ...of, range: question, state });
}

/** Groups for full messages. Before the end, a last group that is not full is left for later. */
function groupsOf(wanted: readonly MatchedPill[], isEnd: boolean): MatchedPill[][] {
  const groups: MatchedPill[][] = [];
  for (let at = 0; at < wanted.length; ) {
    const most = wanted.slice(at, at + REPLAY_LIMITS.joinedMax);
    const group = most.slice(0, countFitting(most.map(({ text }) => text)));
    const isFull = group.length < most.length || most.length === REPLAY_LIMITS.joinedMax;
    if (!isFull && !isEnd && groups.length > 0) break;
    groups.push(group);
    at += group.length;
  }
  return groups;
}

function messageOf({ endpoint, text }: ReplayAsk, group: readonly MatchedPill[]): WebhookMessage {
  const named = [endpoint.id, endpoint.filter, text, group[0]!.key, group.at(-1)!.key];
  const hash = createHash('sha256').update(JSON.stringify([...named, group.length]));
  const id = `rep_${hash.digest('base64url').slice(0, 32)}`;
  const texts = group.map((one) => one.text);
  return joinedMessage(id, texts, { replayed: true });
}

function matchedPill(pill: PublicPill, logEpoch: string): MatchedPill {
  const { epoch = logEpoch, ...fields } = pill;
  const json = JSON.stringify({ epoch, ...fields });
  const { partition, offset } = parseCursor(pill.cursor)!;
  const receivedAt = microsOf(pill.received_at);
  const text = { json, bytes: Buffer.byteLength(json), partition, offset, receivedAt };
  const order = Math.min(microsOf(pill.timestamp), receivedAt);
  return { text, cursor: [partition, offset], key: [order, epoch, offset] };
}

function stateAfter({ cursor, key }: MatchedPill, next: PageState): PageState {
  return 'at' in next ? { ...next, at: cursor } : { ...next, key };
}

/** The position of a part that ends before its page: partitions are read one after another. */
function positionAt(last: MatchedPill, page: Page, { question }: ReplayAsk): string | undefined {
  const end = page.position === undefined ? undefined : parsePosition(page.position);
  if (end === undefined || question.kind !== 'position') return undefined;
  const [partition, offset] = last.cursor;
  const { after, until, symbol } = question;
  const isOnePartition =
    symbol !== undefined || after?.kind === 'cursor' || until?.kind === 'cursor';
  const offsets = new Map(end.offsets);
  for (const later of end.offsets.keys()) {
    if (isOnePartition || later <= partition) continue;
    const start = after?.kind === 'position' ? after.offsets.get(later) : undefined;
    if (start === undefined) offsets.delete(later);
    else offsets.set(later, start);
  }
  return formatPosition(end.epoch, offsets.set(partition, offset));
}

function microsOf(text: string): Micros {
  const parsed = parseTimestamp(text);
  if (!parsed.ok) throw new Error(`History has a malformed time: ${text}`);
  return parsed.micros;
}
