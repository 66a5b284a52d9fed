import type { StreamFilter, StreamMode } from './frames.ts';

/** Where to begin: a position of any answer, or a receive time (ISO 8601). */
export type Resume = string | { readonly since: string };

export interface Subscription {
  /** Symbols, or `["*"]`. */
  readonly symbols: readonly string[];
  readonly mode: StreamMode;
  readonly filter: StreamFilter | undefined;
  readonly snapshot: boolean;
  readonly backfill: boolean;
}

export interface SubscribeFrame {
  readonly op: 'subscribe';
  readonly id: string;
  readonly symbols: readonly string[];
}

/** The server's limit on one frame, unless `welcome` tells another. */
export const FRAME_BYTES_MAX = 4_096;

/**
 * The frames that ask for a subscription: as few as the limit on their size allows; each is
 * answered by a hand-over of its own.
 */
export function subscribeFrames(
  subscription: Subscription,
  resume: Resume | undefined,
  bytesMax: number,
): SubscribeFrame[] {
  const { symbols, mode, filter, snapshot, backfill } = subscription;
  const frames: SubscribeFrame[] = [];
  const frameOf = (part: readonly string[]): SubscribeFrame => ({
    op: 'subscribe',
    id: `s${frames.length + 1}`,
    symbols: part,
    ...{ mode, snapshot, backfill },
    ...(filter === undefined ? {} : { filter }),
    ...(resume === undefined ? {} : { resume }),
  });
  const encoder = new TextEncoder();
  const sizeOf = (value: unknown) => encoder.encode(JSON.stringify(value)).length;
  const emptyBytes = sizeOf(frameOf([])) + 8; // room for a longer id
  let part: string[] = [];
  let bytes = emptyBytes;
  for (const symbol of symbols) {
    const symbolBytes = sizeOf(symbol) + 1;
    if (part.length > 0 && bytes + symbolBytes > bytesMax) {
      frames.push(frameOf(part));
      part = [];
      bytes = emptyBytes;
    }
    part.push(symbol);
    bytes += symbolBytes;
  }
  if (part.length > 0) frames.push(frameOf(part));
  return frames;
}
