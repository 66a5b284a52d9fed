// Generated from the schemas of gateway/stream/protocol:
// `npx vitest run deploy/sdk-types.test.ts -u` writes it.

import type { Pill, SnapshotPill } from '../rest/responses.ts';

/** Which pills a stream sends. */
export interface StreamFilter {
  /** 0 to 100, like `confidence`. */
  readonly min_confidence?: number;
  readonly min_spread?: number;
  /** Not below `min_spread`; both bound `gross_spread_percent`. */
  readonly max_spread?: number;
  readonly states?: readonly string[];
}

/** `all`: every pill. `latest`: see `skipped` of a pill. */
export type StreamMode = 'all' | 'latest';

export interface Auth {
  readonly op: 'auth';
  readonly id?: string;
  readonly key: string;
}

export interface Subscribe {
  readonly op: 'subscribe';
  readonly id?: string;
  readonly symbols: readonly string[];
  readonly mode?: StreamMode;
  readonly snapshot?: boolean;
  readonly backfill?: boolean;
  readonly resume?: string | { readonly since: string } | null;
  readonly filter?: StreamFilter | null;
}

export interface Welcome {
  readonly type: 'welcome';
  readonly version: string;
  readonly session: string;
  readonly account: string;
  readonly tier: string;
  readonly epoch: string;
  readonly time: string;
  readonly heartbeat_ms: number;
  readonly limits: {
    readonly connections: number;
    readonly symbols: number;
    readonly frames_in_per_s: number;
    readonly frame_in_bytes: number;
    readonly queue_bytes: number;
    readonly resume_max_age_s: number;
  };
}

export interface Subscribed {
  readonly type: 'subscribed';
  readonly id?: string;
  readonly accepted: readonly string[];
  readonly rejected: readonly { readonly symbol: string; readonly code: string }[];
  readonly never_seen: readonly string[];
  readonly mode: 'all' | 'latest';
  readonly recovered: boolean | null;
  readonly reason: string | null;
  readonly oldest?: string;
  readonly replaying: number;
  readonly position: string;
}

export interface SnapshotFrame {
  readonly type: 'snapshot';
  readonly id?: string;
  readonly pills: readonly SnapshotPill[];
  readonly last: boolean;
  readonly position: string;
}

export interface LiveFrame {
  readonly type: 'live';
  readonly id?: string;
  readonly replayed: number;
  readonly position: string;
}

export interface PillFrame extends Pill {
  readonly type: 'pill';
  readonly sent_at: string;
}

export interface PillsFrame {
  readonly type: 'pills';
  readonly sent_at: string;
  readonly pills: readonly Pill[];
}

export interface GapFrame {
  readonly type: 'gap';
  readonly symbols: readonly string[];
  readonly after: string | null;
  readonly until: string;
  readonly reason: string;
  readonly fill: string | null;
  readonly fill_free: boolean;
}

export interface Quiet {
  readonly type: 'quiet';
  /** `*`: a summary of a venue that sends nothing, or of all symbols. */
  readonly symbol: string;
  readonly venue?: string;
  /** Why no pills arrive. */
  readonly reason: string;
  readonly since: string | null;
  /** When pills are expected again; with `over`, when a pill arrived. */
  readonly until: string | null;
  /** The symbol is late after this time without a pill. */
  readonly late_after_ms?: number;
  /** The quiet period has ended. */
  readonly over?: true;
  /** Number of symbols in the summary. */
  readonly count?: number;
  /** The first symbols of the summary. */
  readonly symbols?: readonly string[];
}

export interface Heartbeat {
  readonly type: 'heartbeat';
  /** UTC, in microseconds. */
  readonly time: string;
  /**
   * Resume from here. All matching pills up to and including these cursors have been sent,
   * once every `subscribe` you sent has been answered with `live`.
   */
  readonly position: string;
  /** Pills sent since the connection opened. */
  readonly sent: number;
  /** Pills that the filters rejected. */
  readonly filtered: number;
  /** Pills that `latest` mode left out. */
  readonly skipped: number;
  /** Unread bytes in the queue. */
  readonly queue_bytes: number;
  /** How long the oldest of them has been waiting. */
  readonly queue_ms: number;
  readonly generator: {
    /** `unknown`: the log is unreachable (`status`). */
    readonly state: 'alive' | 'silent' | 'never' | 'unknown';
    readonly last_received_at: string | null;
    readonly age_ms: number | null;
    /** The generator is `silent` after this time without a pill. */
    readonly late_after_ms: number;
    /** Whether a market of its symbols is open; null if no symbol has a calendar for this time. */
    readonly in_session: boolean | null;
  };
}

export interface StatusFrame {
  readonly type: 'status';
  /** UTC, in microseconds. */
  readonly time: string;
  readonly component: string;
  readonly state: string;
  readonly code: string;
  /** UTC, in microseconds. */
  readonly since: string;
  readonly until: string | null;
  readonly message: string;
}

export interface Drain {
  readonly type: 'drain';
  readonly reason: string;
  /** The connection closes within this time. */
  readonly grace_ms: number;
  /** Wait this long before connecting again. */
  readonly reconnect_after_ms: number;
  /**
   * Resume from here. All matching pills up to and including these cursors have been sent,
   * once every `subscribe` you sent has been answered with `live`.
   */
  readonly position: string;
}

export type ErrorFrame =
  | {
      readonly type: 'error';
      readonly id?: string;
      readonly code: string;
      readonly message: string;
      readonly fatal: false;
    }
  | {
      readonly type: 'error';
      readonly id?: string;
      readonly code: string;
      readonly message: string;
      readonly fatal: true;
      readonly close: number;
      readonly retry_after_ms?: number;
      readonly position?: string | null;
      readonly limit?: number;
      readonly sessions?: readonly {
        readonly session: string;
        readonly since: string;
        readonly address: string;
        readonly key: string;
        readonly queue_ms: number;
      }[];
      readonly reason?: string;
      readonly tier?: string;
      readonly needs?: string;
    };

/** The frames that the client reads, by their `type`; the server may send others. */
export type ServerFrame =
  | Welcome
  | Subscribed
  | SnapshotFrame
  | LiveFrame
  | PillFrame
  | PillsFrame
  | GapFrame
  | Quiet
  | Heartbeat
  | StatusFrame
  | Drain
  | ErrorFrame;

/** Names of the close codes, as error frames carry them in `code`. */
export const CLOSE_NAMES: Readonly<Record<number, string>> = {
  4000: 'drain',
  4001: 'slow_consumer',
  4002: 'peer_silent',
  4003: 'log_unavailable',
  4004: 'credential_expired',
  4005: 'internal',
  4006: 'too_fast',
  4500: 'auth_missing',
  4501: 'key_invalid',
  4502: 'key_revoked',
  4503: 'tier_too_low',
  4504: 'taken_over',
  4505: 'protocol_error',
  4506: 'frame_too_large',
  4507: 'origin_refused',
  4508: 'connection_limit',
  4509: 'address_refused',
  4510: 'subscription_ended',
  4511: 'dedicated_removed',
};
