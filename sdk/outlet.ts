import type { Emitter } from './emitter.ts';
import { PilloleError } from './error.ts';
import type { GapItem, PillItem, SnapshotItem, StreamItem } from './items.ts';
import { createMailbox } from './mailbox.ts';
import { type Cursor, type Position, parsePosition } from './position.ts';
import type { Track } from './track.ts';

/** The events that carry items. */
export interface ItemEvents {
  pill: PillItem;
  snapshot: SnapshotItem;
  gap: GapItem;
}

export interface OutletOptions {
  readonly emitter: Emitter<ItemEvents>;
  /** Position of what was received. */
  readonly received: Track;
  /** Position of what the iterator has given out. */
  readonly delivered: Track;
  readonly conflate: boolean;
  readonly bufferMax: number;
  /** There is room again. */
  readonly onTaken: () => void;
  /** The consumer has left the loop. */
  readonly onReturn: () => void;
}

/**
 * Where items leave: to listeners at once, to the iterator through a buffer. Until there is a
 * listener or an iterator they wait, so that whoever comes first misses nothing.
 */
export interface Outlet {
  deliver(item: StreamItem, advance: Cursor | undefined): void;
  mark(position: Position): void;
  /** A listener of items was added. */
  flow(): void;
  /** @throws PilloleError `already_iterated` the second time */
  iterate(): AsyncIterator<StreamItem, undefined>;
  /** What waits can still be taken; then comes the error, or the end. */
  end(error: PilloleError | undefined): void;
  /** Resolves when the buffer is below its bound, or nobody reads any more. */
  room(): Promise<void>;
  readonly weight: number;
  readonly position: string | undefined;
}

type Result = IteratorResult<StreamItem, undefined>;
interface Waiter {
  resolve(result: Result): void;
  reject(error: PilloleError): void;
}

export function createOutlet(options: OutletOptions): Outlet {
  const { emitter, received, delivered, conflate, bufferMax } = options;
  const mailbox = createMailbox(delivered, conflate);
  const waiters: Waiter[] = [];
  let whenRoom: (() => void)[] = [];
  let isFlowing = false;
  let isIterating = false;
  let end: { error: PilloleError | undefined } | undefined;

  const emit = (item: StreamItem) => {
    if (item.type === 'pill') emitter.emit('pill', item);
    else if (item.type === 'snapshot') emitter.emit('snapshot', item);
    else emitter.emit('gap', item);
  };
  const freeRoom = () => {
    if (mailbox.weight >= bufferMax && end === undefined) return;
    const ready = whenRoom;
    whenRoom = [];
    for (const resolve of ready) resolve();
  };
  const take = (): StreamItem | undefined => {
    const item = mailbox.take();
    if (item !== undefined) {
      freeRoom();
      options.onTaken();
    }
    return item;
  };
  const settle = ({ resolve, reject }: Waiter) => {
    const error = end?.error;
    if (end !== undefined) end.error = undefined; // thrown once; then it is simply over
    if (error === undefined) resolve({ done: true, value: undefined });
    else reject(error);
  };
  const feed = () => {
    while (waiters.length > 0) {
      const item = take();
      if (item !== undefined) waiters.shift()!.resolve({ done: false, value: item });
      else if (end !== undefined) settle(waiters.shift()!);
      else return;
    }
  };

  return {
    deliver(item, advance) {
      if (end !== undefined) return;
      if (isFlowing) emit(item);
      if (isFlowing && !isIterating) return;
      mailbox.push(item, advance);
      feed();
    },
    mark: mailbox.mark,
    flow() {
      if (isFlowing) return;
      isFlowing = true;
      if (isIterating) return;
      for (let item = take(); item !== undefined; item = take()) emit(item);
    },
    iterate() {
      if (isIterating) {
        const message = 'A stream is iterated once: open another one.';
        throw new PilloleError({ code: 'already_iterated', message });
      }
      isIterating = true;
      const position = parsePosition(received.position());
      if (isFlowing && position !== undefined) delivered.raise(position);
      return {
        next: () =>
          new Promise<Result>((resolve, reject) => {
            waiters.push({ resolve, reject });
            feed();
          }),
        async return() {
          options.onReturn();
          return { done: true, value: undefined };
        },
      };
    },
    end(error) {
      end ??= { error };
      freeRoom();
      feed();
    },
    room() {
      if (mailbox.weight < bufferMax || end !== undefined) return Promise.resolve();
      return new Promise((resolve) => whenRoom.push(resolve));
    },
    get weight() {
      return mailbox.weight;
    },
    get position() {
      return (isFlowing && !isIterating ? received : delivered).position();
    },
  };
}
