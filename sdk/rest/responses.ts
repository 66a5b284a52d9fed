import type { Receipt } from './receipt-type.ts';
/** A pill, the same on every channel. Times are ISO 8601 in UTC with six decimals. */
export interface Pill {
  /** Position in the log, `"<partition>-<offset>"`. */
  readonly cursor: string;
  /** Cursor of the symbol's previous pill; null where it is unknown. */
  readonly prev: string | null;
  /** Chosen by the sender; (symbol, id) is the identity. */
  readonly id: string;
  /** When the signal was made, by the sender's clock. */
  readonly timestamp: string;
  readonly symbol: string;
  readonly gross_spread_percent: number;
  readonly market_state: string;
  /** 0 … 100, as the sender gave it. */
  readonly confidence: number;
  /** When the platform received the pill. */
  readonly received_at: string;
  /** When the stream sent the pill; absent in REST answers, snapshots and filled gaps. */
  readonly sent_at?: string;
  /** Older in order time than an earlier pill of its symbol. */
  readonly late?: true;
  /**
   * Received later after its timestamp than the backfill age (60 s by default): not for trading.
   */
  readonly backfill?: true;
  /** Published before and delivered now to close a gap or to resume. */
  readonly replayed?: true;
  /** In mode `latest`: pills of the symbol that were left out before this one. */
  readonly skipped?: number;
}

/** A pill of a snapshot: the newest of its symbol in order time. */
export interface SnapshotPill extends Pill {
  /** Cursor of the symbol's last pill in the log; above `cursor` if that pill was late. */
  readonly last_cursor: string | null;
}

/** A pill as webhooks carry it: with the epoch that its cursors belong to. */
export interface PublishedPill extends Omit<Pill, 'sent_at' | 'replayed' | 'skipped'> {
  readonly epoch: string;
}

/** The newest pill. */
export interface LatestOne {
  readonly data: Pill;
  /** The answer covers the log up to here. */
  readonly position: string;
}

/** Every requested symbol is either in `data` or in `errors`. */
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
  /** null means no limit. */
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

/** Order by time: oldest first or newest first. */
export type HistoryOrder = 'asc' | 'desc';

/** A query for history: a range of order time, a range of cursors, or the next page. */
export type HistoryQuery =
  | ((
      | { readonly symbol: string; readonly symbols?: undefined }
      /** Up to 20, in one time order. */
      | { readonly symbols: readonly string[]; readonly symbol?: undefined }
    ) &
      (
        | { readonly order?: HistoryOrder; readonly from: string }
        /** Without `from`: the last 31 days before `to`. */
        | { readonly order: 'desc'; readonly from?: undefined }
      ) & {
        /** ISO 8601, at most 31 days after `from`; now by default. */
        readonly to?: string;
        readonly limit?: number;
      })
  | {
      /** Without a symbol: all symbols except those for tests. */
      readonly symbol?: string;
      /** A cursor or position, excluded; a bare cursor needs `epoch`. */
      readonly after?: string;
      /** Included. */
      readonly until?: string;
      readonly epoch?: string;
      readonly limit?: number;
    }
  /** `next` of the previous page: an address with the whole query. */
  | { readonly next: string };

export interface HistoryPage {
  readonly data: readonly Pill[];
  /** Leads to the next page; null on the last one. */
  readonly next: string | null;
  /** This page and those before it cover the range up to here; by time only on the last page. */
  readonly position?: string;
  readonly as_of?: HistoryAsOf;
  /** Covers this page and all earlier ones of the range; see `verifyReceipt`. */
  readonly receipt?: Receipt;
  /** Requested symbols of which no pill was ever received. */
  readonly unknown_symbols?: readonly UnknownSymbol[];
}

/** A symbol without a pill, and the known symbol that was probably meant. */
export interface UnknownSymbol {
  readonly symbol: string;
  readonly did_you_mean?: string;
}

/** What history knew when it answered: it is complete up to the position. */
export interface HistoryAsOf {
  readonly position: string;
  readonly received_at: string | null;
  /** How far history is behind the log; 0 if it is not behind. */
  readonly lag_ms: number | null;
}
