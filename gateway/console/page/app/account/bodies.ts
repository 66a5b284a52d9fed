/** What the pages use of GET /api/account. */
export interface Account {
  readonly name: string;
  readonly suspension: { readonly detail: string } | null;
  readonly tier: string | null;
  readonly plan: string | null;
  readonly subscription: string | null;
  readonly access_ends_at: string | null;
  readonly limits: { readonly calls_per_day: number | null; readonly stream_connections: number };
  readonly services: { readonly api: string; readonly stream: string };
}

export interface Usage {
  readonly today: {
    readonly used: number;
    readonly limit: number | null;
    readonly projected: number | null;
    readonly day: string;
    readonly resets_at: string;
  };
  readonly by_day: readonly { readonly day: string; readonly calls: number }[];
  readonly by_key: readonly {
    readonly key_id: string;
    readonly name: string | null;
    readonly calls: number;
    /** Of the last 14 days, oldest first. */
    readonly recent_days: readonly number[];
  }[];
  /** The last 48 hours, oldest first. */
  readonly by_hour: readonly { readonly hour: string; readonly calls: number }[];
  readonly by_endpoint: readonly { readonly endpoint: string; readonly calls: number }[];
}

export interface Plan {
  readonly tier: string;
  readonly title: string;
  readonly usd_per_month: number;
  readonly calls_per_day: number | null;
  readonly latency: string;
  readonly stream_connections: number;
  readonly webhooks: number | null;
  readonly support: string;
}

export interface Checkout {
  readonly checkout_id: string;
  readonly url: string;
  readonly tier: string;
  readonly amount_cents: number;
  readonly credit_cents: number;
  readonly currency: string;
  readonly period_days: number;
  readonly takes_money: boolean;
}
