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
import type { Kept, OwnedRange } from './changes.ts';
import type { Keeper } from './keeper.ts';
import { LIMITS } from './limits.ts';
import { createRateWindow } from './rate.ts';
import type { AttemptVerdict } from './verdict.ts';

/** Pills of one message, whatever their bytes. */
const RUN_PILLS_MAX = 200;
/** Pills that were taken back wait so long: who has the others is known by then. */
const TAKE_BACK_MS = 50;

/** A pill on its way to one endpoint. */
export interface LanePill {
  readonly text: PillText;
  /** It may have been attempted by itself before a crash: it keeps its own id. */
  readonly isAlone: boolean;
  /** It is delivered, kept, or nobody's any more. */
  settle(): void;
  /** Whether the partition is still ours. */
  isOurs(): boolean;
  /** Name under which its partition was taken. */
  readonly owner: string;
}

/** The way of pills to one endpoint: first attempts, in the order of the log where they can be. */
export interface Lane {
  offer(pill: LanePill): void;
  /** Keeps all that waits, and awaits what is on its way. */
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
  const sending = new Set<Promise<void>>();
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

  /**
   * They were not kept: some belong to another dispatcher now, or we stop. Those that are ours wait
   * again; nothing that is settled here would ever come.
   */
  const takeBack = (pills: readonly Waiting[]) => {
    const ours = pills.filter((pill) => pill.isOurs());
    settleAll(pills.filter((pill) => !pill.isOurs()));
    if (closed) return;
    waiting.unshift(...ours);
    later(TAKE_BACK_MS);
  };

  /** Keeps pills that were not attempted, to be delivered or recovered later. */
  const keepAside = async (pills: readonly Waiting[], status: Kept['status'], nextInS: number) => {
    if (!listener.hasRoom()) {
      listener.refuse(pills[0]!.text.receivedAt, pills.length);
      return settleAll(pills);
    }
    const [only] = pills;
    const message =
      pills.length === 1 && only!.isAlone
        ? pillMessage(parts.epoch, only!.text)
        : joinedMessage(newId('msg'), textsOf(pills));
    const isExpired = status === 'expired';
    const isKept = await keeper.apply({
      kind: 'keep',
      kept: {
        ...{ endpointId: listener.id, message, status, nextInS, attempts: 0, wakes: !isExpired },
        ...{ lastStatus: undefined, lastReason: isExpired ? 'too_old' : undefined },
        joined: rangesOf(pills),
      },
    });
    if (!isKept) return takeBack(pills);
    if (isExpired) attempter.expired(listener, message, 0);
    settleAll(pills);
  };

  /** @returns whether the message is settled: delivered, or kept */
  const afterwards = async (message: WebhookMessage, verdict: AttemptVerdict, isKept: boolean) => {
    const endpointId = listener.id;
    if (verdict.kind === 'stopped') return isKept;
    if (verdict.kind === 'unwanted') return true;
    if (verdict.kind === 'delivered') {
      // Should it not be written, the row comes once more under the same id.
      if (isKept) await keeper.apply({ kind: 'delivered', endpointId, messageId: message.id });
      return true;
    }
    const last = { attempts: 1, lastStatus: verdict.status, lastReason: verdict.reason };
    const nextInS = retryWaitS(1, verdict.retryAfterS)!;
    if (isKept) {
      const messageId = message.id;
      return keeper.apply({ kind: 'failed', endpointId, messageId, next: nextInS, ...last });
    }
    const kept = { endpointId, message, nextInS, wakes: true, joined: [], ...last };
    return keeper.apply({ kind: 'keep', kept: { ...kept, status: 'waiting' } });
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
      void keeping.then((isKept) => isKept && pill.settle());
    }, LIMITS.keepAfterMs);
    const verdict = await attempter.attempt(listener, message, 1);
    clearTimeout(unanswered);
    const isKept = keeping === undefined ? false : await keeping;
    if (await afterwards(message, verdict, isKept)) pill.settle();
  };

  /** Pills that are joined: kept first, then sent. */
  const sendJoined = async (pills: readonly Waiting[]) => {
    const message = joinedMessage(newId('msg'), textsOf(pills));
    const joined = rangesOf(pills);
    const kept: Kept = {
      ...{ endpointId: listener.id, message, status: 'waiting', nextInS: LIMITS.leaseS },
      ...{ attempts: 0, wakes: false, joined, lastStatus: undefined, lastReason: undefined },
    };
    if (!(await keeper.apply({ kind: 'keep', kept }))) return takeBack(pills);
    settleAll(pills);
    await afterwards(message, await attempter.attempt(listener, message, 1), true);
  };

  const launch = (work: Promise<void>) => {
    inFlight += 1;
    const done = work.finally(() => {
      inFlight -= 1;
      sending.delete(done);
      pump();
    });
    sending.add(done);
  };

  /** One at a time decides whether an endpoint that rested is well again. */
  const inFlightMax = () => (listener.breaker.isProbing() ? 1 : LIMITS.inFlightMax);

  const dropLost = () => {
    for (let at = waiting.length - 1; at >= 0; at -= 1) {
      if (waiting[at]!.isOurs()) continue;
      waiting[at]!.settle();
      waiting.splice(at, 1);
    }
  };

  const pump = () => {
    if (waiting.some((pill) => !pill.isOurs())) dropLost();
    if (!listener.wantsPills()) settleAll(waiting.splice(0));
    while (waiting.length > 0 && !closed) {
      const now = parts.nowMs();
      const [first] = waiting;
      const restsMs = listener.breaker.restingUntilMs() - now;
      const age = now - first!.sinceMs;
      if (isTooOld(listener, first!)) {
        const old = takeRun(waiting, (pill) => isTooOld(listener, pill));
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
      const waitMs = inFlight >= inFlightMax() ? LIMITS.keepAfterMs : tokens.waitMs(limit, now);
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
    async close() {
      closed = true;
      clearTimeout(timer);
      dropLost();
      while (waiting.length > 0) await keepAside(takeRun(waiting), 'waiting', 0);
      await Promise.all(sending);
    },
  };
}

function isTooOld(listener: Listener, { text }: Waiting): boolean {
  return Date.now() - text.receivedAt / 1_000 > listener.endpoint.maxAgeS * 1_000;
}

/** Whether what waits fills a message. */
function isFull(waiting: readonly Waiting[]): boolean {
  return waiting.length > fitOf(waiting) || waiting.length >= RUN_PILLS_MAX;
}

/**
 * The first pills that pass, as many as one message may hold; one that keeps its own id goes alone.
 * The first of all must pass.
 */
function takeRun(waiting: Waiting[], test: (pill: Waiting) => boolean = () => true): Waiting[] {
  if (waiting[0]!.isAlone) return waiting.splice(0, 1);
  const end = waiting.findIndex((pill) => pill.isAlone || !test(pill));
  return waiting.splice(0, fitOf(end < 0 ? waiting : waiting.slice(0, end)));
}

/** How many of the first pills one message may hold. */
function fitOf(pills: readonly Waiting[]): number {
  return joinedFit(textsOf(pills.slice(0, RUN_PILLS_MAX)));
}

function textsOf(pills: readonly Waiting[]): PillText[] {
  return pills.map(({ text }) => text);
}

/** Which pills a message holds: of one endpoint and partition they stand in a row. */
function rangesOf(pills: readonly Waiting[]): OwnedRange[] {
  const ranges = new Map<
    string,
    { partition: number; owner: string; first: number; last: number }
  >();
  for (const { text, owner } of pills) {
    const { partition, offset } = text;
    const name = `${partition} ${owner}`;
    const range = ranges.get(name);
    if (range === undefined) ranges.set(name, { partition, owner, first: offset, last: offset });
    else range.last = offset;
  }
  return [...ranges.values()];
}
