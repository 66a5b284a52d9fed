import { PilloleError } from '../error.ts';
import type { Emitter } from './emitter.ts';
import { createItemQueue } from './item-queue.ts';
import { type Cursor, type PositionTracker, parsePosition } from './stream-position.ts';
import type { ItemEvents, StreamItem } from './stream-types.ts';

interface ItemOutputOptions {
  readonly emitter: Emitter<ItemEvents>;
  /** Position of the received items. */
  readonly received: PositionTracker;
  /** Position of the items that the iterator has returned. */
  readonly delivered: PositionTracker;
  readonly conflate: boolean;
  readonly bufferMax: number;
  readonly onTaken: () => void;
  /** The consumer has left its loop. */
  readonly onReturn: () => void;
}

export type ItemOutput = ReturnType<typeof createItemOutput>;

/**
 * Delivers items: to listeners at once, to the iterator through a buffer. Items wait until there is
 * an iterator or a listener, so that the first one misses nothing.
 */
export function createItemOutput(options: ItemOutputOptions) {
  const { emitter, received, delivered, conflate, bufferMax } = options;
  const queue = createItemQueue(delivered, conflate);
  const whenRoom: (() => void)[] = [];
  let isFlowing = false;
  let isIterating = false;
  let isEnded = false;

  const hasRoom = () => queue.weight < bufferMax || isEnded;
  const freeRoom = () => {
    if (!hasRoom()) return;
    for (const resolve of whenRoom.splice(0)) resolve();
  };
  const take = (): StreamItem | undefined => {
    const item = queue.take();
    if (item !== undefined) {
      freeRoom();
      options.onTaken();
    }
    return item;
  };
  const readers = createReaders(take);
  const leave = async () => {
    options.onReturn();
    return { done: true as const, value: undefined };
  };

  return {
    deliver(item: StreamItem, advance: Cursor | undefined): void {
      if (isEnded) return;
      if (isFlowing) emit(emitter, item);
      if (isFlowing && !isIterating) return;
      queue.push(item, advance);
      readers.feed();
    },
    /** A position that holds once all items so far are delivered. */
    mark: queue.mark,
    /** A listener of items was added. */
    flow(): void {
      if (isFlowing) return;
      isFlowing = true;
      if (isIterating) return;
      for (let item = take(); item !== undefined; item = take()) emit(emitter, item);
    },
    /** @throws PilloleError `already_iterated` the second time */
    iterate(): AsyncIterator<StreamItem, undefined> {
      if (isIterating) throw alreadyIterated();
      isIterating = true;
      const position = parsePosition(received.position());
      if (isFlowing && position !== undefined) delivered.raise(position);
      return { next: readers.next, return: leave };
    },
    /** The waiting items can still be taken; after them comes the error, or the end. */
    end(error: PilloleError | undefined): void {
      isEnded = true;
      freeRoom();
      readers.end(error);
    },
    /** Resolves once the buffer is below its bound or the stream has ended. */
    room: (): Promise<void> =>
      hasRoom() ? Promise.resolve() : new Promise((resolve) => whenRoom.push(resolve)),
    get weight(): number {
      return queue.weight;
    },
    get position(): string | undefined {
      return (isFlowing && !isIterating ? received : delivered).position();
    },
  };
}

function alreadyIterated(): PilloleError {
  const message = 'A stream can be iterated once: open another stream.';
  return new PilloleError({ code: 'already_iterated', message });
}

function emit(emitter: Emitter<ItemEvents>, item: StreamItem): void {
  emitter.emit(item.type, item as never);
}

type Result = IteratorResult<StreamItem, undefined>;

/** Pending `next()` calls of the iterator. @param take the next item, if one waits */
function createReaders(take: () => StreamItem | undefined) {
  const pending: { resolve(result: Result): void; reject(error: PilloleError): void }[] = [];
  let end: { error: PilloleError | undefined } | undefined;
  const feed = () => {
    while (pending.length > 0) {
      const item = take();
      if (item === undefined && end === undefined) return;
      const { resolve, reject } = pending.shift()!;
      if (item !== undefined) resolve({ done: false, value: item });
      else {
        const error = end?.error;
        end = { error: undefined }; // the error is thrown once; after it the iterator is done
        if (error === undefined) resolve({ done: true, value: undefined });
        else reject(error);
      }
    }
  };
  return {
    feed,
    next: () =>
      new Promise<Result>((resolve, reject) => {
        pending.push({ resolve, reject });
        feed();
      }),
    end(error: PilloleError | undefined) {
      end ??= { error };
      feed();
    },
  };
}
