import type { Pill, SnapshotPill } from './pill.ts';

/** What a stream is asked for. */
export interface StreamFilter {
  readonly min_confidence?: number;
  readonly min_spread?: number;
  readonly max_spread?: number;
  readonly states?: readonly string[];
}

export type StreamMode = 'all' | 'latest';

export interface Welcome {
  readonly type: 'welcome';
  readonly session: string;
  readonly account: string;
  readonly tier: string;
  readonly epoch: string;
  readonly time: string;
  readonly heartbeat_ms: number;
  readonly limits: { readonly frame_in_bytes: number; readonly [limit: string]: number };
}

export interface Subscribed {
  readonly type: 'subscribed';
  readonly id?: string;
  readonly accepted: readonly string[];
  readonly rejected: readonly { readonly symbol: string; readonly code: string }[];
  readonly never_seen: readonly string[];
  readonly mode: StreamMode;
  /** null: no resume was asked for. */
  readonly recovered: boolean | null;
  readonly reason: string | null;
  readonly replaying: number;
  readonly position: string;
}

export interface Heartbeat {
  readonly type: 'heartbeat';
  readonly time: string;
  readonly position: string;
  readonly sent: number;
  readonly filtered: number;
  readonly skipped: number;
  readonly queue_bytes: number;
  readonly queue_ms: number;
  readonly generator: {
    readonly state: 'alive' | 'silent' | 'never' | 'unknown';
    readonly last_received_at: string | null;
    readonly age_ms: number | null;
  };
}

export interface Quiet {
  readonly type: 'quiet';
  /** `*`: the whole generator. */
  readonly symbol: string;
  readonly reason: string;
  readonly since: string | null;
  readonly until: string | null;
}

export interface StatusFrame {
  readonly type: 'status';
  readonly time: string;
  readonly component: string;
  readonly state: string;
  readonly code: string;
  readonly since: string;
  readonly until: string | null;
  readonly message: string;
}

export interface GapFrame {
  readonly type: 'gap';
  readonly symbols: readonly string[];
  readonly after: string | null;
  readonly until: string | null;
  readonly reason: string;
  readonly fill?: string | null;
  readonly fill_free?: boolean;
}

export interface ErrorFrame {
  readonly type: 'error';
  readonly id?: string;
  readonly code: string;
  readonly message: string;
  readonly fatal: boolean;
  readonly close?: number;
  readonly retry_after_ms?: number;
  readonly position?: string | null;
  readonly [field: string]: unknown;
}

export interface Drain {
  readonly type: 'drain';
  readonly reason: string;
  readonly grace_ms: number;
  readonly reconnect_after_ms: number;
  readonly position: string;
}

/** The frames that the client reads; others, of later versions, are passed over. */
export type ServerFrame =
  | Welcome
  | Subscribed
  | {
      readonly type: 'snapshot';
      readonly id?: string;
      readonly pills: readonly SnapshotPill[];
      readonly last: boolean;
      readonly position: string;
    }
  | {
      readonly type: 'live';
      readonly id?: string;
      readonly replayed: number;
      readonly position: string;
    }
  | ({ readonly type: 'pill' } & Pill)
  | { readonly type: 'pills'; readonly sent_at: string; readonly pills: readonly Pill[] }
  | Heartbeat
  | Quiet
  | StatusFrame
  | GapFrame
  | ErrorFrame
  | Drain;
