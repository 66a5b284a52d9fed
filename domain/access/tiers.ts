/** The tiers on sale, in rising order. */
export const TIER_NAMES = ['basic', 'pro', 'institutional'] as const;
export type Tier = (typeof TIER_NAMES)[number];

/** Capabilities of tiers; each endpoint names the one that it requires. */
export const CAPABILITIES = [
  'latest',
  'verify',
  'symbols',
  'history',
  'analytics',
  'stream',
  'webhooks',
  'dedicated_stream',
  'custom_authentication',
  'destinations',
  'api_manager',
  'white_label',
] as const;
export type Capability = (typeof CAPABILITIES)[number];

export interface TierPlan {
  readonly title: string;
  readonly usdPerMonth: number;
  /** Calls per UTC day; null = unlimited, but still counted. */
  readonly callsPerDay: number | null;
  /** Token bucket for calls: refill per second and size. Per process. */
  readonly ratePerS: number;
  readonly rateBurst: number;
  readonly latency: string;
  /** Open sockets, and symbols that one socket may name (`*` does not count). */
  readonly streamConnections: number;
  readonly streamSymbols: number;
  /** Webhook endpoints; null = unlimited. */
  readonly webhooks: number | null;
  readonly support: string;
  /** Lower numbers are answered first. */
  readonly supportPriority: 1 | 2 | 3;
  readonly capabilities: readonly Capability[];
}

const BASIC = ['latest', 'verify', 'symbols'] as const;
const PRO = [...BASIC, 'history', 'analytics', 'stream', 'webhooks'] as const;

/** The capability table: the only place where tiers differ. */
export const TIERS: Readonly<Record<Tier, TierPlan>> = {
  basic: {
    title: 'Basic API',
    usdPerMonth: 19,
    callsPerDay: 1_000,
    ratePerS: 10,
    rateBurst: 20,
    latency: 'about 100 ms, standard',
    streamConnections: 0,
    streamSymbols: 0,
    webhooks: 0,
    support: 'e-mail',
    supportPriority: 3,
    capabilities: BASIC,
  },
  pro: {
    title: 'Pro API',
    usdPerMonth: 99,
    callsPerDay: 10_000,
    ratePerS: 50,
    rateBurst: 100,
    latency: 'under 100 ms (SLA)',
    streamConnections: 20,
    streamSymbols: 1_000,
    webhooks: 5,
    support: 'priority',
    supportPriority: 2,
    capabilities: PRO,
  },
  institutional: {
    title: 'Institutional API',
    usdPerMonth: 599,
    callsPerDay: null,
    ratePerS: 500,
    rateBurst: 1_000,
    latency: 'under 100 ms (guaranteed SLA)',
    streamConnections: 1_000,
    streamSymbols: 1_000,
    webhooks: null,
    support: 'named API manager',
    supportPriority: 1,
    capabilities: [
      ...PRO,
      ...(['dedicated_stream', 'custom_authentication', 'destinations'] as const),
      ...(['api_manager', 'white_label'] as const),
    ],
  },
};

/** The cheapest tier that has a capability. */
export function tierThatHas(capability: Capability): Tier {
  return TIER_NAMES.find((tier) => TIERS[tier].capabilities.includes(capability))!;
}
