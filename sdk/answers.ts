import type { Pill } from './pill.ts';

/** The newest pill. `position`: everything the answer knows of. */
export interface LatestOne {
  readonly data: Pill;
  readonly position: string;
}

/** Every symbol that was asked for is in `data` or in `errors`. */
export interface LatestMany {
  readonly data: Readonly<Record<string, Pill>>;
  readonly errors: Readonly<Record<string, { readonly code: string; readonly detail: string }>>;
  readonly position: string;
}

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly tier: string | null;
  readonly plan: string | null;
  readonly subscription: string | null;
  readonly period_end: string | null;
  readonly access_ends_at: string | null;
  /** null where there is no limit. */
  readonly limits: Readonly<Record<string, number | string | null>>;
  readonly capabilities: readonly string[];
  readonly support: string;
  readonly services: Readonly<Record<string, string>>;
}

export interface Usage {
  readonly today: {
    readonly day: string;
    readonly used: number;
    readonly limit: number | null;
    readonly remaining: number | null;
    readonly resets_at: string;
    readonly projected: number | null;
  };
  readonly by_day: readonly Readonly<Record<string, unknown>>[];
  readonly by_key: readonly Readonly<Record<string, unknown>>[];
  readonly by_endpoint: readonly Readonly<Record<string, unknown>>[];
}

export interface ServiceStatus {
  readonly status: 'starting' | 'ok' | 'degraded';
  readonly version: string;
  readonly time: string;
  readonly epoch: string;
  readonly position: string;
  readonly components: Readonly<Record<string, { readonly state: string }>>;
  readonly [member: string]: unknown;
}

/** What history is asked for: a range of order time, or of cursors, or the next page. */
export type HistoryQuery =
  | {
      readonly symbol: string;
      /** ISO 8601; at most 31 days. */
      readonly from: string;
      readonly to?: string;
      readonly limit?: number;
    }
  | {
      /** Without it all symbols but those for tests. */
      readonly symbol?: string;
      /** A cursor or position, excluded; a bare cursor needs `epoch`. */
      readonly after?: string;
      /** Included. */
      readonly until?: string;
      readonly epoch?: string;
      readonly limit?: number;
    }
  /** `next` of the page before: an address, with all that was asked. */
  | { readonly next: string };

export interface HistoryPage {
  readonly data: readonly Pill[];
  /** For the page after this one; null at the end. */
  readonly next: string | null;
  /** Of a question by cursors: all up to there was handed over. */
  readonly position?: string;
  readonly as_of?: HistoryAsOf;
}

/** What history knew when it answered: nothing up to the position is missing. */
export interface HistoryAsOf {
  readonly position: string;
  readonly received_at: string | null;
  /** How far behind the log that is; 0: not at all. */
  readonly lag_ms: number | null;
}
