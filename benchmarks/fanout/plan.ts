/** Which symbols each socket wants: all by `*`, or two of the fifty by name. */
export type Pattern = 'all' | '2of50';
export const PATTERNS: readonly Pattern[] = ['all', '2of50'];

/** `stream` is our process, `loop` the bare one beside it, `other` whatever `--url` names. */
export type TargetName = 'stream' | 'loop' | 'other';

/** Symbols of the pills, in turn; even, so that every socket of a pattern wants as many pills. */
export const SYMBOLS: readonly string[] = Array.from({ length: 50 }, (_, i) => `FANOUT.${i}`);
const NAMED = 2;

/**
 * Frames to subscribe with; socket i sends the one at i modulo their number. `2of50`: no two
 * sockets of the first 2,450 want the same two, and each symbol is wanted by as many sockets.
 */
export function subscribeFrames(pattern: Pattern, sockets: number): string[] {
  const frame = (symbols: readonly string[]) =>
    JSON.stringify({ op: 'subscribe', id: '1', symbols, mode: 'all', snapshot: false });
  if (pattern === 'all') return [frame(['*'])];
  const { length } = SYMBOLS;
  return Array.from({ length: Math.max(1, sockets) }, (_, i) => {
    const distance = 1 + (Math.floor(i / length) % (length - 1));
    return frame([SYMBOLS[i % length]!, SYMBOLS[(i + distance) % length]!]);
  });
}

/** One open-loop run of pills. */
export interface PillPlan {
  /** Begins every id; then come the pill's number and its planned moment. */
  readonly run: string;
  readonly perS: number;
  /** A multiple of the symbols' number. */
  readonly pills: number;
  /** Moment of the first pill, in µs of the machine's monotonic clock. */
  readonly startMicros: number;
}

/** Pills of a run of about so many seconds: each symbol as many. */
export function pillCount(perS: number, seconds: number): number {
  return Math.max(1, Math.round((perS * seconds) / SYMBOLS.length)) * SYMBOLS.length;
}

/** Pills of a run that one socket wants. */
export function wantedOf(pattern: Pattern, pills: number): number {
  return pattern === 'all' ? pills : (pills * NAMED) / SYMBOLS.length;
}

/** Moment at which a pill is due, in whole µs; the schedule never waits for an answer. */
export function plannedMicros(plan: PillPlan, pill: number): number {
  return Math.round(plan.startMicros + (pill * 1e6) / plan.perS);
}

/** The id of a pill: what the load client takes number and planned moment from. */
export function pillId(plan: PillPlan, pill: number): string {
  return `${plan.run}-${pill}-${plannedMicros(plan, pill)}`;
}
