import { formatTimestamp, type Micros } from '../../schemas/timestamp.ts';
import type { GeneratorState } from './frames.ts';

/** Whether the generator lives, from when its last pill was received. */
export function generatorState(
  lastReceivedAt: Micros | undefined,
  now: Micros,
  silentAfterMs: number,
): GeneratorState {
  if (lastReceivedAt === undefined) return { state: 'never', last_received_at: null, age_ms: null };
  const ageMs = Math.max(0, Math.round((now - lastReceivedAt) / 1000));
  return {
    state: ageMs <= silentAfterMs ? 'alive' : 'silent',
    last_received_at: formatTimestamp(lastReceivedAt),
    age_ms: ageMs,
  };
}
