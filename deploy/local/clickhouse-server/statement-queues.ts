import { refusal } from './clickhouse-error.ts';
import { WAIT_MS_MAX, WAITING_MAX } from './limits.ts';

export type QueueName = 'write' | 'read' | 'analyst' | 'export';

/**
 * Statements that run at a time. One writer keeps inserts in order of arrival; exports have a
 * connection of their own, so that no read waits for one.
 */
const WIDTH: Readonly<Record<QueueName, number>> = { write: 1, read: 2, analyst: 1, export: 1 };

interface Waiting {
  readonly urgent: boolean;
  readonly begin: () => void;
  readonly refuse: (error: Error) => void;
}

export type StatementQueues = ReturnType<typeof createStatementQueues>;

/**
 * Queues to the engine: writes, reads, analysts and exports do not wait for one another (chdb runs several
 * connections side by side; one connection runs one query at a time). All queues together hold a
 * bounded number of waiting statements.
 * @param bounds for tests
 */
export function createStatementQueues(
  bounds: { readonly waitingMax?: number; readonly waitMsMax?: number } = {},
) {
  const waitingMax = bounds.waitingMax ?? WAITING_MAX;
  const waitMsMax = bounds.waitMsMax ?? WAIT_MS_MAX;
  const queues: Record<QueueName, Waiting[]> = { write: [], read: [], analyst: [], export: [] };
  const active: Record<QueueName, number> = { write: 0, read: 0, analyst: 0, export: 0 };
  let onIdle: (() => void) | undefined;
  let closed = false;

  const waiting = () => sum(Object.values(queues).map(({ length }) => length));
  const running = () => sum(Object.values(active));

  async function turn(name: QueueName, urgent: boolean, abandoned: AbortSignal): Promise<void> {
    if (closed) throw unavailable('The server is stopping');
    if (active[name] >= WIDTH[name]) {
      if (waiting() >= waitingMax) {
        throw unavailable(`${waitingMax} statements are waiting already, try again later`);
      }
      // The previous statement hands its slot to this one: between two turns no slot is free.
      await waitIn(queues[name], urgent, abandoned, waitMsMax, () => {
        active[name] += 1;
      });
    } else active[name] += 1;
  }

  return {
    /** Runs `work` when its turn comes. `urgent` work (an insert) goes before other work. */
    async run<T>(
      name: QueueName,
      urgent: boolean,
      abandoned: AbortSignal,
      work: () => Promise<T>,
    ): Promise<T> {
      await turn(name, urgent, abandoned);
      try {
        return await work();
      } finally {
        active[name] -= 1;
        queues[name].shift()?.begin();
        if (running() === 0) onIdle?.();
      }
    },
    waiting,
    running,
    /** Refuses all waiting statements; resolves when no statement runs. */
    async close(): Promise<void> {
      closed = true;
      for (const queue of Object.values(queues)) {
        for (const entry of queue.splice(0)) entry.refuse(unavailable('The server is stopping'));
      }
      if (running() > 0) await new Promise<void>((resolve) => (onIdle = resolve));
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}

/** Waits in a queue until another statement calls `begin`; rejects on a refusal. */
function waitIn(
  queue: Waiting[],
  urgent: boolean,
  abandoned: AbortSignal,
  waitMsMax: number,
  onBegin: () => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (error: Error) => {
      const index = queue.indexOf(entry);
      if (index >= 0) queue.splice(index, 1);
      entry.refuse(error);
    };
    const onAbandoned = () => leave(new Error('the client went away'));
    const timer = setTimeout(
      () => leave(unavailable(`No turn within ${waitMsMax / 1000} s, try again later`)),
      waitMsMax,
    );
    const settle = () => {
      clearTimeout(timer);
      abandoned.removeEventListener('abort', onAbandoned);
    };
    const entry: Waiting = {
      urgent,
      begin: () => {
        settle();
        onBegin();
        resolve();
      },
      refuse: (error) => {
        settle();
        reject(error);
      },
    };
    abandoned.addEventListener('abort', onAbandoned);
    const before = urgent ? queue.findIndex((other) => !other.urgent) : -1;
    if (before >= 0) queue.splice(before, 0, entry);
    else queue.push(entry);
  });
}

function unavailable(text: string) {
  return refusal('TOO_MANY_SIMULTANEOUS_QUERIES', text);
}
