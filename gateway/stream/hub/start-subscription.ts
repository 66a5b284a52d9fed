import { isSymbol } from '../../../schemas/pill.ts';
import { formatPosition } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Limits } from '../limits.ts';
import type { LatestPills } from '../log/latest-pills.ts';
import type { ReplayBuffer } from '../log/replay-buffer.ts';
import type { SubscribeFrame } from '../protocol/parse-frame.ts';
import type { ServerFrame } from '../protocol/server-frame-schemas.ts';
import { encodeFrame } from '../protocol/server-frames.ts';
import { ALL_SYMBOLS, type Subscription } from '../protocol/subscription.ts';
import { type GapDeps, gapFrames } from '../replay/gap.ts';
import { createReplaySource, planReplay, type ResumeOutcome } from '../replay/replay-plan.ts';
import { chooseRows, createSnapshot } from '../replay/snapshot.ts';
import type { Hub } from './hub.ts';
import { maySee, type Principal } from './principal.ts';
import type { Subscriber } from './subscriber.ts';

export interface SubscriptionDeps extends GapDeps {
  readonly hub: Hub;
  readonly latestPills: LatestPills;
  readonly replayBuffer: ReplayBuffer;
  readonly nowMicros: () => Micros;
  readonly limits: Limits;
}

/**
 * Starts a subscription: `subscribed`, then the replay or a snapshot, `live`, and from then on new
 * pills. All of it happens in one turn: pills published before are in the replay or the snapshot,
 * pills published later are not. If a resume was refused, `gap` frames before the snapshot name the
 * missing pills. The hub must be flushed and the outbox settled; the bound of the outbox is not
 * checked here.
 */
export function startSubscription(
  deps: SubscriptionDeps,
  subscriber: Subscriber,
  frame: SubscribeFrame,
  outcome: ResumeOutcome,
  principal: Pick<Principal, 'accountId' | 'symbolsMax' | 'desk'>,
): void {
  const { hub, latestPills, nowMicros, limits } = deps;
  const { id, mode, backfill, filter, resume } = frame;
  const { outbox, codec } = subscriber;
  const symbolsMax = Math.min(principal.symbolsMax, limits.symbolsPerConnectionMax);
  const { accepted, rejected } = sortSymbols(frame.symbols, subscriber, principal, symbolsMax);
  const subscription: Subscription = { mode, backfill, filter };
  const request = { outcome, symbols: accepted, named: subscriber.named, subscription };
  const plan = planReplay(request, deps.replayBuffer, limits.replayPillsMax);
  const position = latestPills.position();
  const isKnown = (symbol: string) =>
    symbol === ALL_SYMBOLS || latestPills.get(symbol) !== undefined;
  const replaying = plan.recovered === true ? plan.pills.length : 0;
  outbox.push(
    encodeFrame({
      type: 'subscribed',
      id,
      accepted,
      rejected,
      never_seen: accepted.filter((symbol) => !isKnown(symbol)),
      mode,
      recovered: plan.recovered,
      reason: plan.recovered === false ? plan.reason : null,
      oldest: plan.recovered === false ? oldestPosition(deps) : undefined,
      replaying,
      position,
    }),
  );
  for (const symbol of accepted) hub.subscribe(subscriber, symbol, subscription);
  if (plan.recovered === true && replaying > 0) {
    outbox.pushSource(createReplaySource(plan, backfill, codec, nowMicros, limits), replaying);
  }
  if (plan.recovered === false && resume?.kind === 'position') {
    const missed = { position: resume.position, reason: plan.reason, backfill };
    for (const gap of gapFrames(deps, principal.accountId, accepted, missed)) outbox.push(gap);
  }
  if (plan.recovered === false || (plan.recovered === null && frame.snapshot)) {
    const rows = chooseRows(latestPills, accepted, subscriber.named, subscription);
    outbox.pushSource(createSnapshot(id, rows, backfill, position, limits));
  }
  outbox.push(encodeFrame({ type: 'live', id, replayed: replaying, position }));
}

/** The oldest position after which every pill is in memory. */
function oldestPosition({ latestPills, replayBuffer }: SubscriptionDeps): string {
  const offsets = [...replayBuffer.starts].filter(([, start]) => start > 0);
  return formatPosition(latestPills.epoch, new Map(offsets.map(([p, start]) => [p, start - 1])));
}

/**
 * Rejects malformed symbols, those that the desk may not read (`*` with them), and symbols beyond the
 * bound on named symbols.
 */
function sortSymbols(
  symbols: readonly string[],
  { named }: Subscriber,
  principal: Pick<Principal, 'desk'>,
  namedMax: number,
) {
  const accepted: string[] = [];
  const rejected: ServerFrame<'subscribed'>['rejected'] = [];
  let count = named.size;
  for (const symbol of symbols) {
    const isNew = symbol !== ALL_SYMBOLS && !named.has(symbol);
    if (symbol !== ALL_SYMBOLS && !isSymbol(symbol)) {
      rejected.push({ symbol: symbol.toWellFormed(), code: 'symbol_malformed' });
    } else if (!maySee(principal, symbol)) rejected.push({ symbol, code: 'symbol_refused' });
    else if (isNew && count >= namedMax) rejected.push({ symbol, code: 'symbol_limit' });
    else {
      if (isNew) count += 1;
      accepted.push(symbol);
    }
  }
  return { accepted, rejected };
}
