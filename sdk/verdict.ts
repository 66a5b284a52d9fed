import { PilloleError } from './error.ts';
import type { Pill } from './pill.ts';

/** A pill as verdicts carry it. */
export type VerdictPill = Omit<Pill, 'prev' | 'sent_at' | 'late' | 'replayed' | 'skipped'>;

/** What stands against acting on it. */
export interface VerdictReason {
  /** Stable, e.g. `pill_too_old`; further codes may come. */
  readonly code: string;
  readonly detail: string;
  /** Of the newer pill, with `superseded`. */
  readonly cursor?: string;
}

/** What was judged, of whatever subject. */
interface Judged {
  readonly checked_at: string;
  readonly verdict: 'verified' | 'stale' | 'disagrees' | 'outlier' | 'unknown';
  /** The verdict is `verified`. */
  readonly usable: boolean;
  /** All that stands against it, the worst first. */
  readonly reasons: readonly VerdictReason[];
  /** When to ask again; the verdict holds until then, but a newer pill supersedes it sooner. */
  readonly valid_until: string;
  /** All pills up to here were known. */
  readonly position: string;
}

type State = 'open' | 'lunch_break' | 'closed' | 'holiday' | 'unknown';

/** All that was weighed. */
interface Weighed {
  readonly age_ms: number | null;
  readonly max_age_ms: number;
  readonly market: {
    readonly venue: string | null;
    readonly timezone: string | null;
    readonly session_date: string | null;
    readonly now: State;
    readonly at_pill: State | null;
    readonly half_day: boolean;
    readonly next: { readonly at: string; readonly state: State } | null;
    /** Unscheduled halts are not seen. */
    readonly basis: 'calendar' | 'always_open' | 'none';
    readonly calendar_until: string | null;
  };
  readonly agreement: {
    readonly pill: string;
    readonly calendar: State;
    /** null for a label that is not known. */
    readonly agrees: boolean | null;
  } | null;
  readonly generator: {
    readonly state: 'alive' | 'silent' | 'never';
    readonly last_received_at: string | null;
    readonly silent_ms: number | null;
    readonly late_after_ms: number;
  };
  readonly spread: {
    readonly value: number;
    /** Live pills that it is held against. */
    readonly n: number;
    readonly window: string;
    readonly median: number;
    readonly p01: number;
    readonly p99: number;
    /** null: infinite. */
    readonly robust_z: number | null;
    readonly percentile: number;
  } | null;
  /** Why no pill comes; null while they do. */
  readonly quiet: {
    readonly reason: string;
    readonly since: string | null;
    readonly expected_back: string | null;
  } | null;
  readonly limits: Readonly<Record<string, number>>;
}

/** Answer of `/api/market/verify` about a symbol: its newest pill, weighed. */
export interface Verdict extends Judged, Weighed {
  readonly subject: { readonly symbol: string };
  /** null: there is none. */
  readonly pill: VerdictPill | null;
}

/** About a pill that was published. Of the newest of its symbol all that was weighed is told. */
export interface PublishedVerdict extends Judged, Partial<Weighed> {
  readonly subject: { readonly symbol: string; readonly id: string };
  readonly published: true;
  readonly pill: VerdictPill;
  readonly is_latest: boolean;
  /** How often it came again, and with other content; null: too long ago to know. */
  readonly repeats: number | null;
  readonly conflicts: number | null;
  /** Of its cursor, where that log is no more. */
  readonly epoch?: string;
}

/** About an id that was not found. */
export interface MissingVerdict extends Judged {
  readonly subject: { readonly symbol: string; readonly id: string };
  /** false: the search covered all pills; null: it could not. */
  readonly published: false | null;
  readonly searched_from: string | null;
}

/** Of several symbols: each is in `data` or in `errors`. */
export interface Verdicts {
  readonly data: Readonly<Record<string, Verdict>>;
  readonly errors: Readonly<Record<string, { readonly code: string; readonly detail: string }>>;
  readonly position: string;
}

/** Of an id alone: every symbol that has it. */
export interface VerdictList {
  readonly data: readonly PublishedVerdict[];
  /** false: there are more, or a part could not be searched. */
  readonly complete: boolean;
  readonly reasons: readonly VerdictReason[];
  readonly position: string;
}

/** Whether one may act on a symbol now. */
export interface Usable {
  /** True only where the platform has verified it, and the verdict still holds. */
  readonly usable: boolean;
  /**
   * `verified`; else the first reason of the verdict (`pill_too_old`, `market_not_open`, …),
   * `verify_unavailable` where the server has no verify, `verdict_expired`, `verdict_malformed`,
   * or the code of the error that stood in the way.
   */
  readonly reason: string;
  /** ms that the verdict holds from now on; 0 when not usable. */
  readonly validForMs: number;
  readonly verdict: Verdict | undefined;
  readonly error: PilloleError | undefined;
}

/** A verdict older than this was not asked for to act on it. */
export const USABLE_TIMEOUT_MS = 3_000;

/**
 * Asks whether one may act on a symbol. Never throws, and never says yes when in doubt.
 * @param ask one attempt at the verdict
 */
export async function askUsable(symbol: string, ask: () => Promise<Verdict>): Promise<Usable> {
  const askedAt = performance.now();
  try {
    const verdict = await ask();
    return judge(symbol, verdict, performance.now() - askedAt);
  } catch (error) {
    if (!(error instanceof PilloleError)) return refuse('verdict_malformed', undefined);
    const isMissing = error.code === 'endpoint_unavailable';
    return { ...refuse(isMissing ? 'verify_unavailable' : error.code, undefined), error };
  }
}

function judge(symbol: string, verdict: Verdict, tookMs: number): Usable {
  const isOfSymbol = verdict?.subject?.symbol === symbol;
  if (!isOfSymbol || typeof verdict.usable !== 'boolean') {
    return refuse('verdict_malformed', undefined);
  }
  const [reason] = verdict.reasons ?? [];
  if (!verdict.usable || verdict.verdict !== 'verified') {
    return refuse(reason?.code ?? verdict.verdict ?? 'unknown', verdict);
  }
  // Both times are the server's, so its clock may differ from ours. The way here counts against it.
  const heldMs = Date.parse(verdict.valid_until ?? '') - Date.parse(verdict.checked_at);
  const validForMs = Math.floor(heldMs - tookMs);
  if (!(validForMs > 0)) return refuse('verdict_expired', verdict);
  return { usable: true, reason: 'verified', validForMs, verdict, error: undefined };
}

function refuse(reason: string, verdict: Verdict | undefined): Usable {
  return { usable: false, reason, validForMs: 0, verdict, error: undefined };
}
