/** What the pages use of GET /api/status. */
export interface PlatformStatus {
  readonly status: 'starting' | 'ok' | 'degraded';
  readonly time: string;
  readonly components: Readonly<
    Record<string, { readonly state: string; readonly lag_records?: number }>
  >;
  readonly latency: {
    readonly window_s: number;
    readonly count: number;
    readonly p50_ms: number | null;
    readonly p99_ms: number | null;
  };
  readonly last_received_at: string | null;
  readonly notices: readonly {
    readonly id: string;
    readonly severity: string;
    readonly message: string;
    readonly published_at: string;
  }[];
}
