import { benchSymbols } from '../harness/bench-pills.ts';
import { subscribeFrame } from '../harness/bench-socket.ts';

/** Which symbols each socket subscribes to: all by `*`, or two of the fifty by name. */
export const PATTERNS = ['all', '2of50'] as const;
export type Pattern = (typeof PATTERNS)[number];

/** In turn; an even number, so that all sockets of a pattern get equally many pills. */
export const SYMBOLS = benchSymbols(50);
const NAMED = 2;

/**
 * Frames to subscribe with; socket i sends the one at i modulo their number. `2of50`: the first
 * 2,450 sockets have different pairs, and each symbol has equally many sockets.
 */
export function subscribeFrames(pattern: Pattern, sockets: number): string[] {
  if (pattern === 'all') return [subscribeFrame(['*'])];
  const { length } = SYMBOLS;
  return Array.from({ length: Math.max(1, sockets) }, (_, i) => {
    const distance = 1 + (Math.floor(i / length) % (length - 1));
    return subscribeFrame([SYMBOLS[i % length]!, SYMBOLS[(i + distance) % length]!]);
  });
}

/** Pills of a run of about this many seconds: equally many of each symbol. */
export function pillCount(perS: number, seconds: number): number {
  return Math.max(1, Math.round((perS * seconds) / SYMBOLS.length)) * SYMBOLS.length;
}

/** Pills of a run that one socket is subscribed to. */
export function wantedOf(pattern: Pattern, pills: number): number {
  return pattern === 'all' ? pills : (pills * NAMED) / SYMBOLS.length;
}
