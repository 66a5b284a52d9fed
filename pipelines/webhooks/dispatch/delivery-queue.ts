import { type BucketRate, takeToken, waitForTokenMs } from '../../../lib/rate/token-bucket.ts';
import { createSlidingCounter } from '../../../lib/rate/window-counter.ts';
import type { NewDelivery } from '../delivery-changes.ts';
import { type RegisteredEndpoint, rateLimitOf } from '../endpoints/registered-endpoint.ts';
import { LIMITS } from '../limits.ts';
import {
  type FirstAttemptDeps,
  sendAlone,
  sendJoined,
  storeUnattempted,
} from './first-attempts.ts';
import { fillsMessage, type QueuedPill, settleAll, takeRun } from './queued-pill.ts';

/** Pills that were not stored wait this long: which partitions were lost is known by then. */
const REQUEUED_MS = 50;

export interface DeliveryQueueDeps extends FirstAttemptDeps {
  /** Share of the log that this dispatcher reads: limits of an endpoint are divided by it. */
  share(): number;
  nowMs(): number;
}

interface Waiting extends QueuedPill {
  readonly sinceMs: number;
}

type Step =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'expire' }
  | { readonly kind: 'store'; readonly nextInS: number }
  | { readonly kind: 'send'; readonly rate: BucketRate };

/**
 * First attempts of pills at one endpoint, in the order of the log where possible. While pills are
 * few, each is sent singly. Above the joining rate, or while the endpoint is slower than its pills
 * arrive, they are joined. Pills are stored when the endpoint rests or they have waited for a
 * second, and then no longer hold up the log.
 */
export class DeliveryQueue {
  readonly #endpoint: RegisteredEndpoint;
  readonly #deps: DeliveryQueueDeps;
  readonly #waiting: Waiting[] = [];
  readonly #arrivals = createSlidingCounter(1_000);
  readonly #sending = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(endpoint: RegisteredEndpoint, deps: DeliveryQueueDeps) {
    this.#endpoint = endpoint;
    this.#deps = deps;
  }

  add(pill: QueuedPill): void {
    const now = this.#deps.nowMs();
    this.#arrivals.add(now);
    this.#waiting.push({ ...pill, sinceMs: now });
    this.#pump();
  }

  /** Stores all waiting pills, and awaits the attempts in flight. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#dropLost();
    while (this.#waiting.length > 0) await this.#store(takeRun(this.#waiting), 'waiting', 0);
    await Promise.all(this.#sending);
  }

  #pump(): void {
    this.#dropLost();
    if (!this.#endpoint.receivesPills()) settleAll(this.#waiting.splice(0));
    while (this.#waiting.length > 0 && !this.#closed) {
      const now = this.#deps.nowMs();
      const step = this.#nextStep(this.#waiting[0]!, now);
      if (step.kind === 'wait') {
        this.#pumpIn(step.ms);
        return;
      }
      if (step.kind === 'expire') {
        const old = takeRun(this.#waiting, (pill) => this.#isTooOld(pill));
        void this.#store(old, 'expired', 0);
      } else if (step.kind === 'store') {
        void this.#store(takeRun(this.#waiting), 'waiting', step.nextInS);
      } else {
        takeToken(this.#endpoint.bucket, step.rate, now);
        this.#send(takeRun(this.#waiting));
      }
    }
  }

  #nextStep(first: Waiting, now: number): Step {
    if (this.#isTooOld(first)) return { kind: 'expire' };
    const { breaker, bucket } = this.#endpoint;
    const restsMs = breaker.restingUntilMs() - now;
    const ageMs = now - first.sinceMs;
    const isFull = () => fillsMessage(this.#waiting);
    if (restsMs > 0 || ageMs >= LIMITS.storeAfterMs) {
      // Storing at once would make one message per pill, so pills of the same second are stored
      // together.
      if (ageMs < LIMITS.storeAfterMs && !isFull()) {
        return { kind: 'wait', ms: LIMITS.storeAfterMs - ageMs };
      }
      return { kind: 'store', nextInS: Math.max(0, restsMs / 1_000) };
    }
    const share = this.#deps.share();
    const rate = rateLimitOf(this.#endpoint, share);
    // After a rest, one attempt at a time decides whether the endpoint has recovered.
    const inFlightMax = breaker.isProbing() ? 1 : LIMITS.inFlightMax;
    const isBusy = this.#sending.size >= inFlightMax;
    const waitMs = isBusy ? LIMITS.storeAfterMs : waitForTokenMs(bucket, rate, now);
    if (waitMs > 0) return { kind: 'wait', ms: Math.min(LIMITS.storeAfterMs - ageMs, waitMs) };
    const isMany = this.#arrivals.count(now) > LIMITS.joinAbovePerS * share;
    if (isMany && !first.isAlone && ageMs < LIMITS.joinLingerMs && !isFull()) {
      return { kind: 'wait', ms: LIMITS.joinLingerMs - ageMs };
    }
    return { kind: 'send', rate };
  }

  #send(run: readonly Waiting[]): void {
    const [first] = run;
    const work =
      run.length === 1
        ? sendAlone(this.#endpoint, first!, this.#deps)
        : sendJoined(this.#endpoint, run, this.#deps).then((isStored) => {
            if (!isStored) this.#requeue(run);
          });
    const done = work.finally(() => {
      this.#sending.delete(done);
      this.#pump();
    });
    this.#sending.add(done);
  }

  async #store(pills: readonly Waiting[], status: NewDelivery['status'], nextInS: number) {
    const isStored = await storeUnattempted(this.#endpoint, pills, status, nextInS, this.#deps);
    if (!isStored) this.#requeue(pills);
  }

  /**
   * The pills were not stored: some belong to another dispatcher now, or this process is stopping.
   * Our own pills wait again; pills of a stopping process stay unsettled, so that the next owner
   * sends them.
   */
  #requeue(pills: readonly Waiting[]): void {
    const ours = keepOurs(pills);
    if (this.#closed) return;
    this.#waiting.unshift(...ours);
    this.#pumpIn(REQUEUED_MS);
  }

  #dropLost(): void {
    if (this.#waiting.every((pill) => pill.isOurs())) return;
    this.#waiting.splice(0, this.#waiting.length, ...keepOurs(this.#waiting));
  }

  #pumpIn(ms: number): void {
    const waitMs = Math.max(1, ms);
    const atMs = this.#deps.nowMs() + waitMs;
    if (atMs >= this.#timerAtMs) return;
    clearTimeout(this.#timer);
    this.#timerAtMs = atMs;
    this.#timer = setTimeout(() => {
      this.#timerAtMs = Number.POSITIVE_INFINITY;
      this.#pump();
    }, waitMs);
  }

  #isTooOld({ encoded }: Waiting): boolean {
    return Date.now() - encoded.receivedAt / 1_000 > this.#endpoint.settings.maxAgeS * 1_000;
  }
}

/** Settles the pills that are no longer ours. @returns the others */
function keepOurs(pills: readonly Waiting[]): Waiting[] {
  settleAll(pills.filter((pill) => !pill.isOurs()));
  return pills.filter((pill) => pill.isOurs());
}
