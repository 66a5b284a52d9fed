import type { PilloleError } from './error.ts';
import type { ErrorFrame, Quiet, ServerFrame, Subscribed } from './frames.ts';
import type { Break, Gaps } from './gaps.ts';
import type { SnapshotItem } from './items.ts';
import type { Ledger } from './ledger.ts';
import type { Pill, SnapshotPill } from './pill.ts';
import { type Position, parseCursor, parsePosition } from './position.ts';
import { frameError, refusedSymbol } from './stream-errors.ts';
import { FRAME_BYTES_MAX, type Resume, type Subscription, subscribeFrames } from './subscribe.ts';
import type { Track } from './track.ts';

/** What a connection was opened as. */
export interface Opened {
  readonly session: string;
  readonly tier: string;
  readonly epoch: string;
  readonly accepted: readonly string[];
  readonly neverSeen: readonly string[];
  /** null: nothing was to be resumed. False: a gap may follow, which is told. */
  readonly recovered: boolean | null;
  readonly reason: string | null;
  readonly position: string;
}

export interface SessionOptions {
  readonly subscription: Subscription;
  readonly resume: Resume | undefined;
  readonly ledger: Ledger;
  /** What was received so far. */
  readonly track: Track;
  readonly gaps: Gaps;
  readonly send: (frame: object) => void;
  /** @param advances all of its partition up to it was handed over */
  readonly onPill: (pill: Pill, advances: boolean) => void;
  readonly onSnapshot: (snapshot: SnapshotItem) => void;
  /** All up to here was handed over. */
  readonly onPosition: (position: Position) => void;
  readonly onOpened: (opened: Opened) => void;
  readonly onError: (error: PilloleError) => void;
  /** Connecting again cannot help: the subscription itself was refused. */
  readonly onRefused: (error: PilloleError) => void;
  readonly onQuiet: (quiet: Quiet) => void;
}

/** One hand-over: of the symbols of one subscribe frame. */
interface HandOver {
  subscribed: Subscribed | undefined;
  isLive: boolean;
  /** Breaks that the snapshot shows after a resume that failed. */
  readonly breaks: Break[];
}

/** Reads the frames of one connection, in order. */
export interface Session {
  /** @returns a promise when it fills a gap: the next frame must wait for it */
  read(frame: ServerFrame): void | Promise<void>;
  /** All hand-overs are done: positions that are told hold for everything asked for. */
  readonly isSettled: boolean;
}

export function createSession(options: SessionOptions): Session {
  const { subscription, resume, ledger, track, gaps } = options;
  const { mode, filter, backfill } = subscription;
  /** Only then does `prev` name the pill that came before. */
  const isChained = mode === 'all' && filter === undefined && !backfill;
  const handOvers = new Map<string, HandOver>();
  /** Symbols whose gap the server has told since it subscribed them. */
  const told = new Set<string>();
  const start = typeof resume === 'string' ? parsePosition(resume) : undefined;
  let welcome: { session: string; tier: string; epoch: string } | undefined;
  let isSettled = false;
  let generator = 'alive';

  const reached = (text: unknown) => {
    const position = parsePosition(text);
    if (isSettled && position !== undefined) options.onPosition(position);
  };

  const take = (pills: readonly Pill[], from: number): void | Promise<void> => {
    for (let at = from; at < pills.length; at += 1) {
      const pill = pills[at]!;
      if (backfill ? ledger.wasHanded(pill) : ledger.isDouble(pill)) continue;
      const after = isChained ? ledger.brokenAfter(pill) : undefined;
      if (after === undefined) hand(pill);
      else {
        const missing = { symbol: pill.symbol, after, until: pill.prev! };
        return gaps.seen([missing], 'prev_broken', welcome?.epoch ?? '').then(() => {
          hand(pill);
          return take(pills, at + 1);
        });
      }
    }
  };
  /** Pills come in the log's order but in `latest`; a hand-over in parts is none until its end. */
  const advances = () => {
    if (mode === 'latest') return false;
    const [first] = handOvers.values();
    const isReplay = first?.subscribed?.recovered === true && start !== undefined;
    return isSettled || (isReplay && handOvers.size === 1);
  };
  const hand = (pill: Pill) => {
    ledger.hand(pill);
    options.onPill(pill, advances());
  };

  /** After a resume that failed: is the symbol's last pill one that we were not given? */
  const noteBreak = (breaks: Break[], { symbol, cursor, last_cursor }: SnapshotPill) => {
    const until = last_cursor ?? cursor;
    const at = parseCursor(until);
    if (at === undefined) return;
    const had = start?.offsets.get(at.partition) ?? -1;
    const last = ledger.lastOf(symbol);
    if (at.offset <= Math.max(had, parseCursor(last ?? '')?.offset ?? -1)) return;
    const after = last ?? (had < 0 ? null : `${at.partition}-${had}`);
    breaks.push({ symbol, after, until });
  };

  const isCovered = (symbol: string) => told.has(symbol) || told.has('*');

  const tellLost = ({ subscribed, breaks }: HandOver): void | Promise<void> => {
    if (subscribed?.recovered !== false || mode === 'latest') return;
    const reason = subscribed.reason ?? 'not_recovered';
    const { accepted } = subscribed;
    // Cursors of another log say nothing about this one.
    if (isChained && start !== undefined && start.epoch === welcome?.epoch) {
      // The log ends before what we had: nobody can say what became of the rest.
      if (reason === 'position_ahead') gaps.unknown(accepted, reason);
      const rest = breaks.filter(({ symbol }) => !isCovered(symbol));
      if (rest.length > 0) return gaps.seen(rest, reason, welcome?.epoch ?? '');
    } else if (told.size === 0) gaps.unknown(accepted, reason);
  };

  const settle = (handOver: HandOver, position: string) => {
    handOver.isLive = true;
    const all = [...handOvers.values()];
    if (isSettled || !all.every(({ isLive }) => isLive)) return;
    isSettled = true;
    reached(position);
    const answers = all.map(({ subscribed }) => subscribed!).filter(Boolean);
    const failed = answers.find(({ recovered }) => recovered === false);
    options.onOpened({
      ...welcome!,
      accepted: answers.flatMap(({ accepted }) => accepted),
      neverSeen: answers.flatMap(({ never_seen }) => never_seen ?? []),
      recovered: failed === undefined ? (answers[0]?.recovered ?? null) : false,
      reason: failed?.reason ?? null,
      position,
    });
  };

  const readError = (frame: ErrorFrame) => {
    reached(frame.position);
    if (frame.fatal) return; // its end is told by who ends it
    const error = frameError(frame, track.position());
    const isOurs = frame.id !== undefined && handOvers.has(frame.id);
    if (isOurs) options.onRefused(error);
    else options.onError(error);
  };

  const readSubscribed = (frame: Subscribed) => {
    const handOver = handOvers.get(frame.id ?? '');
    if (handOver === undefined) return;
    handOver.subscribed = frame;
    for (const { symbol, code } of frame.rejected) options.onError(refusedSymbol(symbol, code));
    const all = [...handOvers.values()];
    const isNothing = all.every(({ subscribed }) => subscribed?.accepted.length === 0);
    const [first] = frame.rejected;
    if (isNothing && first !== undefined)
      options.onRefused(refusedSymbol(first.symbol, first.code));
  };

  return {
    get isSettled() {
      return isSettled;
    },
    read(frame) {
      switch (frame.type) {
        case 'welcome': {
          const { session, tier, epoch } = frame;
          welcome = { session, tier, epoch };
          ledger.begin(epoch);
          const bytesMax = frame.limits?.frame_in_bytes ?? FRAME_BYTES_MAX;
          for (const subscribe of subscribeFrames(subscription, resume, bytesMax)) {
            handOvers.set(subscribe.id, { subscribed: undefined, isLive: false, breaks: [] });
            options.send(subscribe);
          }
          return;
        }
        case 'subscribed':
          readSubscribed(frame);
          return;
        case 'snapshot': {
          const handOver = handOvers.get(frame.id ?? '');
          for (const pill of frame.pills) {
            if (handOver?.subscribed?.recovered === false) noteBreak(handOver.breaks, pill);
            ledger.show(pill);
          }
          const { pills, last, position } = frame;
          options.onSnapshot({ type: 'snapshot', pills, last, position });
          return;
        }
        case 'live': {
          const handOver = handOvers.get(frame.id ?? '');
          if (handOver === undefined) return;
          const lost = tellLost(handOver);
          if (lost === undefined) settle(handOver, frame.position);
          else return lost.then(() => settle(handOver, frame.position));
          return;
        }
        case 'pill':
          return take([frame], 0);
        case 'pills':
          return take(
            frame.pills.map((pill) => ({ ...pill, sent_at: frame.sent_at })),
            0,
          );
        case 'gap':
          for (const symbol of frame.symbols) told.add(symbol);
          return gaps.told(frame);
        case 'heartbeat': {
          reached(frame.position);
          const { state, last_received_at: since } = frame.generator;
          if (state !== generator && state !== 'alive') {
            const reason = `generator_${state}`;
            options.onQuiet({ type: 'quiet', symbol: '*', reason, since, until: null });
          }
          generator = state;
          return;
        }
        case 'quiet':
          options.onQuiet(frame);
          return;
        case 'drain':
          reached(frame.position);
          return;
        case 'error':
          readError(frame);
          return;
      }
    },
  };
}
