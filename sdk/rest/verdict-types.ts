import type { Pill } from './responses.ts';

/** A pill in a verdict. */
export type VerdictPill = Omit<Pill, 'prev' | 'sent_at' | 'late' | 'replayed' | 'skipped'>;

/** A reason not to act on a pill. */
export interface VerdictReason {
  /** Stable, e.g. `pill_too_old`; later versions may add codes. */
  readonly code: string;
  readonly detail: string;
  /** Cursor of the newer pill, with `superseded`. */
  readonly cursor?: string;
}

/** The part that all verdicts have. */
interface VerdictBase {
  readonly checked_at: string;
  readonly verdict: 'verified' | 'stale' | 'disagrees' | 'outlier' | 'unknown';
  /** True if and only if the verdict is `verified`. */
  readonly usable: boolean;
  /** All reasons not to act, the worst first. */
  readonly reasons: readonly VerdictReason[];
  /** First moment at which the verdict can change; until then it holds unless a pill arrives. */
  readonly valid_until: string;
  /** Asking at these moments follows a symbol all day with less than Basic's 1,000 calls. */
  readonly ask_again_at: string;
  /** The verdict covers the log up to here. */
  readonly position: string;
}

type State = 'open' | 'lunch_break' | 'closed' | 'holiday' | 'unknown';

/** The findings behind a verdict. */
interface Findings {
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
    /** Source of the market state. Unscheduled halts are not known. */
    readonly basis: 'calendar' | 'always_open' | 'none';
    readonly calendar_until: string | null;
  };
  readonly agreement: {
    readonly pill: string;
    readonly calendar: State;
    /** null for an unknown label. */
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
    /** Number of live pills that the spread is compared with. */
    readonly n: number;
    readonly window: string;
    readonly median: number;
    readonly p01: number;
    readonly p99: number;
    /** null means infinite. */
    readonly robust_z: number | null;
    readonly percentile: number;
  } | null;
  /** Why no pills arrive; null while they arrive. */
  readonly quiet: {
    readonly reason: string;
    readonly since: string | null;
    readonly expected_back: string | null;
  } | null;
  readonly limits: Readonly<Record<string, number>>;
}

/** Answer of `/api/market/verify` about a symbol: the verdict on its newest pill. */
export interface Verdict extends VerdictBase, Findings {
  readonly subject: { readonly symbol: string };
  /** null if the symbol has no pill. */
  readonly pill: VerdictPill | null;
}

/** Verdict on a published pill. The findings are present if it is the newest of its symbol. */
export interface PublishedVerdict extends VerdictBase, Partial<Findings> {
  readonly subject: { readonly symbol: string; readonly id: string };
  readonly published: true;
  readonly pill: VerdictPill;
  readonly is_latest: boolean;
  /** How often the pill was sent again; null if it is too old to know. */
  readonly repeats: number | null;
  /** How often it was sent again with other content; null if it is too old to know. */
  readonly conflicts: number | null;
  /** Epoch of the pill's cursor, if it is not the current one. */
  readonly epoch?: string;
}

/** Verdict on an id that was not found. */
export interface MissingVerdict extends VerdictBase {
  readonly subject: { readonly symbol: string; readonly id: string };
  /** false: the search covered all pills; null: it could not cover all. */
  readonly published: false | null;
  readonly searched_from: string | null;
}

/** Verdicts on several symbols: each symbol is either in `data` or in `errors`. */
export interface Verdicts {
  readonly data: Readonly<Record<string, Verdict>>;
  readonly errors: Readonly<Record<string, { readonly code: string; readonly detail: string }>>;
  readonly position: string;
}

/** Verdicts on an id alone: one for every symbol that has a pill with this id. */
export interface VerdictList {
  readonly data: readonly PublishedVerdict[];
  /** false: there are more pills, or a part of the pills could not be searched. */
  readonly complete: boolean;
  readonly reasons: readonly VerdictReason[];
  readonly position: string;
}
