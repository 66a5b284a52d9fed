import type { PilloleError } from '../error.ts';
import type { Pill, SnapshotPill } from '../rest/responses.ts';
import { type Break, fillBreaks, fillFrame, reportUnknown } from './gap-filler.ts';
import { frameError, refusedSymbols } from './stream-errors.ts';
import type {
  ErrorFrame,
  Heartbeat,
  LiveFrame,
  ServerFrame,
  SnapshotFrame,
  Subscribed,
  Welcome,
} from './stream-frames.ts';
import { offsetOf, parseCursor, parsePosition } from './stream-position.ts';
import { deliver, finish, reportError, type StreamRuntime } from './stream-runtime.ts';
import { FRAME_BYTES_MAX, subscribeFrames } from './stream-subscription.ts';

/** The answers to one subscribe frame: `subscribed`, snapshot or replay, then `live`. */
interface Handover {
  subscribed: Subscribed | undefined;
  isLive: boolean;
  /** Gaps that the snapshot shows after a failed resume. */
  readonly breaks: Break[];
}

/** The state of one connection. */
export type Session = ReturnType<typeof createSession>;

export function createSession(runtime: StreamRuntime) {
  const { mode, filter, backfill } = runtime.subscription;
  const resume = runtime.received.position() ?? runtime.resume;
  return {
    runtime,
    resume,
    /** Whether `prev` names the pill that the stream sent before. */
    isChained: mode === 'all' && filter === undefined && !backfill,
    /** The position to resume from; undefined if there is none, or a time. */
    start: typeof resume === 'string' ? parsePosition(resume) : undefined,
    /** By the id of the subscribe frame. */
    handovers: new Map<string, Handover>(),
    /** Symbols whose gap the server has reported in this session, perhaps `*`. */
    reportedGaps: new Set<string>(),
    welcome: { session: '', tier: '', epoch: '' },
    /** The log ends before the position that the session resumed from. */
    isAhead: false,
    /** All handovers are live: positions of frames hold for the whole subscription. */
    isSettled: false,
    generator: 'alive' as Heartbeat['generator']['state'],
    /** The error of a fatal `error` frame. */
    fatal: undefined as PilloleError | undefined,
    /** How long the server asked to wait, in ms; `exact`: its value includes the jitter. */
    serverDelay: undefined as { readonly ms: number; readonly exact: boolean } | undefined,
    /** Infinity until the connection is live. */
    liveSince: Number.POSITIVE_INFINITY,
  };
}

/**
 * Reads one frame; frames must be read in order.
 * @returns a promise while a gap is filled: the next frame must wait for it
 */
export function readFrame(session: Session, frame: ServerFrame): void | Promise<void> {
  const { runtime } = session;
  const { emitter } = runtime;
  if (runtime.state === 'closed') return;
  switch (frame.type) {
    case 'welcome':
      return readWelcome(session, frame);
    case 'subscribed':
      return readSubscribed(session, frame);
    case 'snapshot':
      return readSnapshot(session, frame);
    case 'live':
      return readLive(session, frame);
    case 'pill':
      return readPills(session, [frame]);
    case 'pills':
      return readPills(
        session,
        frame.pills.map((pill) => ({ ...pill, sent_at: frame.sent_at })),
      );
    case 'gap':
      for (const symbol of frame.symbols) session.reportedGaps.add(symbol);
      return fillFrame(runtime, frame);
    case 'heartbeat':
      readHeartbeat(session, frame);
      return emitter.emit('heartbeat', frame);
    case 'quiet':
      return emitter.emit('quiet', frame);
    case 'status':
      return emitter.emit('status', frame);
    case 'drain':
      reach(session, frame.position);
      session.serverDelay = { ms: frame.reconnect_after_ms, exact: true };
      return emitter.emit('drain', frame);
    case 'error':
      return readError(session, frame);
  }
}

function readWelcome(session: Session, { session: id, tier, epoch, limits }: Welcome): void {
  const { runtime, handovers, resume } = session;
  session.welcome = { session: id, tier, epoch };
  runtime.chains.beginConnection(epoch);
  const bytesMax = limits?.frame_in_bytes ?? FRAME_BYTES_MAX;
  for (const frame of subscribeFrames(runtime.subscription, resume, bytesMax)) {
    handovers.set(frame.id, { subscribed: undefined, isLive: false, breaks: [] });
    runtime.socket?.send(frame);
  }
}

function readSubscribed(session: Session, frame: Subscribed): void {
  const { runtime, handovers } = session;
  const handover = handovers.get(frame.id ?? '');
  if (handover === undefined) return;
  handover.subscribed = frame;
  if (frame.reason === 'position_ahead' && !session.isAhead) {
    session.isAhead = true;
    runtime.chains.clear();
  }
  if (frame.rejected.length === 0) return;
  const all = [...handovers.values()];
  const isNothingAccepted = all.every(({ subscribed }) => subscribed?.accepted.length === 0);
  if (runtime.throwsRefusals || isNothingAccepted) {
    finish(runtime, refusedSymbols(frame.rejected));
    return;
  }
  for (const { symbol, code } of frame.rejected) {
    if (runtime.refused.has(symbol)) continue;
    runtime.refused.add(symbol);
    deliver(runtime, { type: 'refused', symbol, code }, false);
  }
}

function readSnapshot(session: Session, { id, pills, last, position }: SnapshotFrame): void {
  const { runtime, handovers } = session;
  const handover = handovers.get(id ?? '');
  for (const pill of pills) {
    if (handover?.subscribed?.recovered === false) {
      const found = breakBefore(session, pill);
      if (found !== undefined) handover.breaks.push(found);
    }
    runtime.chains.addSnapshot(pill);
  }
  deliver(runtime, { type: 'snapshot', pills, last, position }, false);
}

/** The gap before a symbol's last pill after a failed resume, unless that pill was delivered. */
function breakBefore(
  { runtime, start }: Session,
  { symbol, cursor, last_cursor }: SnapshotPill,
): Break | undefined {
  const until = last_cursor ?? cursor;
  const at = parseCursor(until);
  if (at === undefined) return undefined;
  const resumed = start?.offsets.get(at.partition) ?? -1;
  const last = runtime.chains.lastCursor(symbol);
  if (at.offset <= Math.max(resumed, offsetOf(last))) return undefined;
  return { symbol, after: last ?? (resumed < 0 ? null : `${at.partition}-${resumed}`), until };
}

function readLive(session: Session, { id, position }: LiveFrame): void | Promise<void> {
  const handover = session.handovers.get(id ?? '');
  if (handover === undefined) return;
  const filling = reportFailedResume(session, handover);
  if (filling !== undefined) return filling.then(() => settle(session, handover, position));
  settle(session, handover, position);
}

/** Reports the pills that a failed resume may have lost. @returns a promise while gaps are filled */
function reportFailedResume(
  { runtime, start, welcome, isChained, reportedGaps }: Session,
  { subscribed, breaks }: Handover,
): void | Promise<void> {
  if (subscribed?.recovered !== false || runtime.subscription.mode === 'latest') return;
  const reason = subscribed.reason ?? 'not_recovered';
  // Cursors of another log cannot be compared with cursors of this log.
  if (isChained && start?.epoch === welcome.epoch) {
    // The log ends before the position: the fate of the pills in between is unknown.
    if (reason === 'position_ahead') reportUnknown(runtime, subscribed.accepted, reason);
    const rest = reportedGaps.has('*')
      ? []
      : breaks.filter(({ symbol }) => !reportedGaps.has(symbol));
    if (rest.length > 0) return fillBreaks(runtime, rest, reason, welcome.epoch);
  } else if (reportedGaps.size === 0) reportUnknown(runtime, subscribed.accepted, reason);
}

function settle(session: Session, handover: Handover, position: string): void {
  const { runtime, handovers, welcome } = session;
  // The stream may have been closed while gaps were filled.
  if (runtime.state === 'closed') return;
  handover.isLive = true;
  const all = [...handovers.values()];
  if (session.isSettled || !all.every(({ isLive }) => isLive)) return;
  session.isSettled = true;
  if (session.isAhead) replacePosition(runtime, position);
  else reach(session, position);
  const answers = all.map(({ subscribed }) => subscribed!).filter(Boolean);
  const failed = answers.find(({ recovered }) => recovered === false);
  session.liveSince = performance.now();
  runtime.state = 'live';
  runtime.emitter.emit('open', {
    ...welcome,
    accepted: answers.flatMap(({ accepted }) => accepted),
    neverSeen: answers.flatMap(({ never_seen }) => never_seen ?? []),
    recovered: failed === undefined ? (answers[0]?.recovered ?? null) : false,
    reason: failed?.reason ?? null,
    position,
  });
}

/** Delivers new pills; a gap before one is filled first, and the rest waits for the fill. */
function readPills(session: Session, pills: readonly Pill[], from = 0): void | Promise<void> {
  const { runtime, isChained, welcome } = session;
  const { chains, subscription } = runtime;
  for (let at = from; at < pills.length; at += 1) {
    const pill = pills[at]!;
    const isKnown = subscription.backfill ? chains.wasDelivered(pill) : chains.isDuplicate(pill);
    if (isKnown) continue;
    const after = isChained ? chains.brokenAfter(pill) : undefined;
    if (after === undefined) deliverPill(session, pill);
    else {
      const missing = { symbol: pill.symbol, after, until: pill.prev! };
      return fillBreaks(runtime, [missing], 'prev_broken', welcome.epoch).then(() => {
        deliverPill(session, pill);
        return readPills(session, pills, at + 1);
      });
    }
  }
}

function deliverPill(session: Session, pill: Pill): void {
  session.runtime.chains.addPill(pill);
  deliver(session.runtime, { type: 'pill', ...pill }, advancesPosition(session));
}

/**
 * Pills come in the order of the log, except in mode `latest`; a subscription in several frames
 * holds no position before all of them are live.
 */
function advancesPosition({ runtime, handovers, start, isSettled }: Session): boolean {
  if (runtime.subscription.mode === 'latest') return false;
  const [first] = handovers.values();
  const isReplay = first?.subscribed?.recovered === true && start !== undefined;
  return isSettled || (isReplay && handovers.size === 1);
}

function readHeartbeat(session: Session, { position, generator }: Heartbeat): void {
  reach(session, position);
  const { state, last_received_at: since } = generator;
  if (state !== session.generator && state !== 'alive') {
    const reason = `generator_${state}`;
    session.runtime.emitter.emit('quiet', {
      type: 'quiet',
      symbol: '*',
      reason,
      since,
      until: null,
    });
  }
  session.generator = state;
}

function readError(session: Session, frame: ErrorFrame): void {
  const { runtime, handovers } = session;
  if (frame.fatal) reach(session, frame.position);
  const error = frameError(frame, runtime.received.position());
  if (frame.fatal) {
    session.fatal = error;
    const { retryAfterMs: ms } = error;
    if (ms !== undefined) session.serverDelay = { ms, exact: false };
  }
  const isOfSubscribe = !frame.fatal && frame.id !== undefined && handovers.has(frame.id);
  if (isOfSubscribe) finish(runtime, error);
  else reportError(runtime, error);
}

function reach({ runtime, isSettled }: Session, text: unknown): void {
  const position = parsePosition(text);
  if (!isSettled || position === undefined || runtime.state === 'closed') return;
  runtime.received.raise(position);
  runtime.output.mark(position);
}

function replacePosition({ received, output }: StreamRuntime, text: string): void {
  const position = parsePosition(text);
  if (position === undefined) return;
  received.replace(position);
  output.mark(position, true);
}
