import { newId } from '../../lib/access/id.ts';
import {
  joinedFit,
  joinedMessage,
  type PillText,
  pillMessage,
  type WebhookMessage,
} from '../../lib/webhooks/message.ts';
import { retryWaitS } from '../../lib/webhooks/schedule.ts';
import type { Attempter } from './attempt.ts';
import type { Listener } from './audience.ts';
import type { Kept, OffsetRange } from './changes.ts';
import type { Keeper } from './keeper.ts';
import { LIMITS } from './limits.ts';
import { createRateWindow } from './rate.ts';
import type { AttemptVerdict } from './verdict.ts';

/** A pill on its way to one endpoint. */
export interface LanePill {
  readonly text: PillText;
  /** It may have been attempted by itself before a crash: it keeps its own id. */
  readonly isAlone: boolean;
  /** It is delivered, kept, or nobody's any more. */
  settle(): void;
  /** Whether the partition is still ours. */
  isOurs(): boolean;
}

/** The way of pills to one endpoint: first attempts, in the order of the log where they can be. */
export interface Lane {
  offer(pill: LanePill): void;
  /** Pills that wait or are on their way. */
  readonly size: number;
  /** Keeps all that waits; what is on its way is kept by its own clock. */
  close(): Promise<void>;
}

export interface LaneParts {
  readonly epoch: string;
  readonly attempter: Attempter;
  readonly keeper: Keeper;
  /** Share of the log that this dispatcher reads: limits of an endpoint are divided by it. */
  share(): number;
  nowMs(): number;
}

interface Waiting extends LanePill {
  readonly sinceMs: number;
}

/**
 * A lane sends each pill by itself while they are few. Above the joining rate, or while the endpoint
 * is slower than they come, pills are joined: such a message is kept in PostgreSQL before it is sent,
 * so that a crash cannot join the same pills otherwise under another id. What rests or has waited
 * for a second is kept too, and no longer holds up the log.
 */
export function createLane(listener: Listener, parts: LaneParts): Lane {
  const { attempter, keeper } = parts;
  const waiting: Waiting[] = [];
  const { tokens } = listener;
  const rate = createRateWindow();
  let inFlight = 0;
  let timer: NodeJS.Timeout | undefined;
  let timerAtMs = Number.POSITIVE_INFINITY;
  let closed = false;

  const later = (ms: number) => {
    const atMs = parts.nowMs() + Math.max(1, ms);
    if (atMs >= timerAtMs) return;
    clearTimeout(timer);
    timerAtMs = atMs;
    timer = setTimeout(
      () => {
        timerAtMs = Number.POSITIVE_INFINITY;
        pump();
      },
      Math.max(1, ms),
    );
  };

  const settleAll = (pills: readonly LanePill[]) => {
    for (const pill of pills) pill.settle();
  };

  /** Keeps pills that were not attempted, to be delivered or recovered later. */
  const keepAside = async (pills: readonly Waiting[], status: Kept['status'], nextInS: number) => {
    const ours = pills.filter((pill) => pill.isOurs());
    if (ours.length === 0) return settleAll(pills);
    if (!listener.hasRoom()) {
      listener.refuse(ours[0]!.text.receivedAt, ours.length);
      return settleAll(pills);
    }
    const [only] = ours;
    const message =
      ours.length === 1 && only!.isAlone
        ? pillMessage(parts.epoch, only!.text)
        : joinedMessage(newId('msg'), textsOf(ours));
    await keeper.apply({
      kind: 'keep',
      kept: {
        ...{ endpointId: listener.id, message, status, nextInS, attempts: 0, wakes: true },
        ...{ lastStatus: undefined, lastReason: status === 'expired' ? 'too_old' : undefined },
        joined: rangesOf(ours),
      },
    });
    settleAll(pills);
  };

  const afterwards = async (message: WebhookMessage, verdict: AttemptVerdict, isKept: boolean) => {
    const endpointId = listener.id;
    if (verdict.kind === 'stopped') return;
    if (verdict.kind === 'delivered') {
      if (isKept) await keeper.apply({ kind: 'delivered', endpointId, messageId: message.id });
      return;
    }
    const last = { attempts: 1, lastStatus: verdict.status, lastReason: verdict.reason };
    const nextInS = retryWaitS(1, verdict.retryAfterS)!;
    if (isKept) {
      const messageId = message.id;
      await keeper.apply({ kind: 'failed', endpointId, messageId, next: nextInS, ...last });
      return;
    }
    const kept = { endpointId, message, nextInS, wakes: true, joined: [], ...last };
    await keeper.apply({ kind: 'keep', kept: { ...kept, status: 'waiting' } });
  };

  /** One pill by itself: its id follows from its place, so nothing need be written before. */
  const sendAlone = async (pill: Waiting) => {
    const message = pillMessage(parts.epoch, pill.text);
    const kept: Kept = {
      ...{ endpointId: listener.id, message, status: 'waiting', nextInS: LIMITS.leaseS },
      ...{ attempts: 0, wakes: false, joined: [], lastStatus: undefined, lastReason: undefined },
    };
    let keeping: Promise<boolean> | undefined;
    const unanswered = setTimeout(() => {
      keeping = keeper.apply({ kind: 'keep', kept });
      void keeping.then(() => pill.settle());
    }, LIMITS.keepAfterMs);
    const verdict = await attempter.attempt(listener, message, 1);
    clearTimeout(unanswered);
    const isKept = keeping === undefined ? false : await keeping;
    await afterwards(message, verdict, isKept);
    if (verdict.kind !== 'stopped') pill.settle();
  };

  /** Pills that are joined: kept first, then sent. */
  const sendJoined = async (pills: readonly Waiting[]) => {
    const message = joinedMessage(newId('msg'), textsOf(pills));
    const joined = rangesOf(pills);
    const kept: Kept = {
      ...{ endpointId: listener.id, message, status: 'waiting', nextInS: LIMITS.leaseS },
      ...{ attempts: 0, wakes: false, joined, lastStatus: undefined, lastReason: undefined },
    };
    const isKept = await keeper.apply({ kind: 'keep', kept });
    settleAll(pills);
    if (!isKept) return;
    await afterwards(message, await attempter.attempt(listener, message, 1), true);
  };

  const launch = (sending: Promise<void>) => {
    inFlight += 1;
    void sending.finally(() => {
      inFlight -= 1;
      pump();
    });
  };

  const pump = () => {
    while (waiting.length > 0 && !closed) {
      const now = parts.nowMs();
      const [first] = waiting;
      if (!listener.wantsPills() || !first!.isOurs()) {
        waiting.shift()!.settle();
        continue;
      }
      const restsMs = listener.breaker.restingUntilMs() - now;
      const age = now - first!.sinceMs;
      if (isTooOld(listener, first!)) {
        const old = takeWhile(waiting, (pill) => isTooOld(listener, pill));
        void keepAside(old, 'expired', 0);
        continue;
      }
      if (restsMs > 0 || age >= LIMITS.keepAfterMs) {
        // Little by little would be a message a pill: what comes within the second goes together.
        if (age < LIMITS.keepAfterMs && !isFull(waiting)) return later(LIMITS.keepAfterMs - age);
        void keepAside(takeRun(waiting), 'waiting', Math.max(0, restsMs / 1_000));
        continue;
      }
      const share = parts.share();
      const limit = listener.endpoint.ratePerS * share;
      const waitMs =
        inFlight >= LIMITS.inFlightMax ? LIMITS.keepAfterMs : tokens.waitMs(limit, now);
      if (waitMs > 0) return later(Math.min(LIMITS.keepAfterMs - age, waitMs));
      const isMany = rate.perS(now) > LIMITS.joinAbovePerS * share;
      if (isMany && !first!.isAlone && age < LIMITS.joinLingerMs && !isFull(waiting)) {
        return later(LIMITS.joinLingerMs - age);
      }
      tokens.take(limit, now);
      const run = takeRun(waiting);
      if (run.length === 1) launch(sendAlone(run[0]!));
      else launch(sendJoined(run));
    }
  };

  return {
    offer(pill) {
      const now = parts.nowMs();
      rate.count(now);
      waiting.push({ ...pill, sinceMs: now });
      pump();
    },
    get size() {
      return waiting.length + inFlight;
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      while (waiting.length > 0) await keepAside(takeRun(waiting), 'waiting', 0);
    },
  };
}

function isTooOld(listener: Listener, { text }: Waiting): boolean {
  return Date.now() - text.receivedAt / 1_000 > listener.endpoint.maxAgeS * 1_000;
}

/** Whether what waits fills a message. */
function isFull(waiting: readonly Waiting[]): boolean {
  return waiting.length > joinedFit(textsOf(waiting.slice(0, 200))) || waiting.length >= 200;
}

/** The first pills, as many as one message may hold; one that keeps its own id goes alone. */
function takeRun(waiting: Waiting[]): Waiting[] {
  const alone = waiting.findIndex(({ isAlone }) => isAlone);
  if (alone === 0) return waiting.splice(0, 1);
  const run = waiting.slice(0, alone < 0 ? 200 : Math.min(alone, 200));
  return waiting.splice(0, joinedFit(textsOf(run)));
}

function takeWhile(waiting: Waiting[], test: (pill: Waiting) => boolean): Waiting[] {
  const end = waiting.findIndex((pill) => !test(pill));
  const run = waiting.slice(0, end < 0 ? waiting.length : end);
  const alone = run.findIndex(({ isAlone }) => isAlone);
  if (alone === 0) return waiting.splice(0, 1);
  const texts = textsOf(run.slice(0, alone < 0 ? 200 : alone));
  return waiting.splice(0, joinedFit(texts));
}

function textsOf(pills: readonly Waiting[]): PillText[] {
  return pills.map(({ text }) => text);
}

/** Which pills a message holds: of one endpoint and partition they stand in a row. */
function rangesOf(pills: readonly Waiting[]): (OffsetRange & { readonly partition: number })[] {
  const ranges = new Map<number, { first: number; last: number }>();
  for (const { text } of pills) {
    const range = ranges.get(text.partition);
    if (range === undefined) ranges.set(text.partition, { first: text.offset, last: text.offset });
    else range.last = text.offset;
  }
  return [...ranges].map(([partition, range]) => ({ partition, ...range }));
}
