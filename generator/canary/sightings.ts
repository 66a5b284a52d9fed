import { createCounter, createGauge, createHistogram } from '../../lib/metrics/metrics.ts';

/** Where a canary pill is seen. */
export const CHANNELS = ['ingest', 'latest', 'stream', 'webhook'] as const;
export type Channel = (typeof CHANNELS)[number];

/** A channel that has not shown a pill in this time has missed it. */
export const SEEN_WITHIN_MS = 5_000;

const seconds = createHistogram({
  name: 'pillole_canary_seconds',
  help: 'From the start of the post of a canary pill until a channel shows it.',
  labelNames: ['channel'] as const,
  buckets: [0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5],
});
const pillsTotal = createCounter({
  name: 'pillole_canary_pills_total',
  help: 'Canary pills by channel: seen, or missed = not seen within 5 s.',
  labelNames: ['channel', 'outcome'] as const,
});
const seenAt = createGauge({
  name: 'pillole_canary_seen_timestamp_seconds',
  help: 'When a channel last showed a canary pill.',
  labelNames: ['channel'] as const,
});

/** Watches pills from their post until each channel has shown them, or for 5 s. */
export function createSightings(channels: readonly Channel[]) {
  /** At most SEEN_WITHIN_MS / everyMs + 1 pills: each leaves at its time-out. */
  const pending = new Map<string, { readonly at: number; readonly missing: Set<Channel> }>();
  const timers = new Set<NodeJS.Timeout>();
  for (const channel of channels) {
    for (const outcome of ['seen', 'missed'] as const) pillsTotal.inc({ channel, outcome }, 0);
  }
  return {
    /** Begins to watch a pill, just before it is posted. */
    begin(id: string): void {
      pending.set(id, { at: performance.now(), missing: new Set(channels) });
      const timer = setTimeout(() => {
        timers.delete(timer);
        const missing = pending.get(id)?.missing ?? [];
        pending.delete(id);
        for (const channel of missing) pillsTotal.inc({ channel, outcome: 'missed' });
      }, SEEN_WITHIN_MS);
      timers.add(timer);
    },
    /** Notes that a channel shows a pill; other pills, and further sights, do not count. */
    see(channel: Channel, id: string): void {
      const pill = pending.get(id);
      if (pill === undefined || !pill.missing.delete(channel)) return;
      seconds.observe({ channel }, (performance.now() - pill.at) / 1_000);
      pillsTotal.inc({ channel, outcome: 'seen' });
      seenAt.set({ channel }, Date.now() / 1_000);
      if (pill.missing.size === 0) pending.delete(id);
    },
    close(): void {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

export type Sightings = ReturnType<typeof createSightings>;
