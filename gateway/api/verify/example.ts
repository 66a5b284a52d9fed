/** An answer by symbol, as the reference shows it. */
export const VERDICT_EXAMPLE = {
  subject: { symbol: '7203.T' },
  ...{ checked_at: '2026-11-20T01:02:03.456000Z', verdict: 'verified', usable: true, reasons: [] },
  valid_until: '2026-11-20T01:02:08.004000Z',
  pill: {
    ...{ cursor: '3-132', id: 'p-10', timestamp: '2026-11-20T01:02:03.004000Z' },
    ...{ symbol: '7203.T', gross_spread_percent: 0.1261, market_state: 'open', confidence: 0.88 },
    received_at: '2026-11-20T01:02:03.011000Z',
  },
  ...{ age_ms: 452, max_age_ms: 5000 },
  market: {
    ...{ venue: 'XTKS', timezone: 'Asia/Tokyo', session_date: '2026-11-20', now: 'open' },
    ...{ at_pill: 'open', half_day: false },
    next: { at: '2026-11-20T02:30:00Z', state: 'lunch_break' },
    ...{ basis: 'calendar', calendar_until: '2027-12-31' },
  },
  agreement: { pill: 'open', calendar: 'open', agrees: true },
  generator: {
    ...{ state: 'alive', last_received_at: '2026-11-20T01:02:03.420000Z' },
    ...{ silent_ms: 36, late_after_ms: 5000 },
  },
  spread: {
    ...{ value: 0.1261, n: 1000, window: 'last 1000 pills', median: 0.118, p01: 0.07, p99: 0.21 },
    ...{ robust_z: 0.41, percentile: 0.71 },
  },
  quiet: null,
  limits: {
    ...{ max_age_ms: 5000, generator_late_after_ms: 5000, robust_z: 4, spread_n_min: 30 },
    ...{ boundary_ms: 1000, ahead_ms: 1000, lag_ms: 1000 },
  },
  position: 'k7f3:0-95,3-140',
};
