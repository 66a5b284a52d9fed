/** A pill as every channel hands it over. Times are ISO 8601 in UTC with six decimals. */
export interface Pill {
  /** `"<partition>-<offset>"`: where it stands in the log. */
  readonly cursor: string;
  /** Cursor of the symbol's pill before it; null where that cannot be said. */
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
  /** When the platform had it. */
  readonly received_at: string;
  /** When the stream sent it; absent in REST answers, snapshots and fills. */
  readonly sent_at?: string;
  /** Older in order time than one of its symbol before it. */
  readonly late?: true;
  /** Received later after its timestamp than the backfill age (60 s by default): nothing to trade on. */
  readonly backfill?: true;
  /** Published before, handed over again to close a gap or to resume. */
  readonly replayed?: true;
  /** Pills of the symbol left out before it, in mode `latest`. */
  readonly skipped?: number;
}

/** A pill of a snapshot: the newest of its symbol in order time. */
export interface SnapshotPill extends Pill {
  /** Cursor of the symbol's last pill in the log; above `cursor` when that one was late. */
  readonly last_cursor: string | null;
}
