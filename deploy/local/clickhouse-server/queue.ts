import { refusal } from './clickhouse-error.ts';
import { WAIT_MS_MAX, WAITING_MAX } from './limits.ts';

export type Lane = 'write' | 'read' | 'analyst';

/** Statements that run at a time. One writer keeps inserts in order of arrival. */
const WIDTH: Readonly<Record<Lane, number>> = { write: 1, read: 2, analyst: 1 };

interface Waiting {
  readonly urgent: boolean;
  readonly begin: () => void;
  readonly refuse: (error: Error) => void;
}

/**
 * Lanes to the engine: inserts, reads and analysts do not wait for one another (chdb runs several
 * connections side by side; one connection runs one query at a time). All lanes together hold a
 * bounded number of waiting requests.
 */
export interface Queue {
  /** Runs `work` when it is its turn. `urgent` (an insert) goes before what is not. */
  run<T>(lane: Lane, urgent: boolean, abandoned: AbortSignal, work: () => Promise<T>): Promise<T>;
  waiting(): number;
  running(): number;
  /** Refuses what waits; resolves when nothing runs. */
  close(): Promise<void>;
}

/** An empty queue. `bounds` are for tests. */
export function createQueue(
  bounds: { readonly waitingMax?: number; readonly waitMsMax?: number } = {},
): Queue {
  const waitingMax = bounds.waitingMax ?? WAITING_MAX;
  const waitMsMax = bounds.waitMsMax ?? WAIT_MS_MAX;
  const lines: Record<Lane, Waiting[]> = { write: [], read: [], analyst: [] };
  const active: Record<Lane, number> = { write: 0, read: 0, analyst: 0 };
  let idle: (() => void) | undefined;
  let closed = false;

  const waiting = () => lines.write.length + lines.read.length + lines.analyst.length;
  const running = () => active.write + active.read + active.analyst;
  const full = (text: string) => refusal('TOO_MANY_SIMULTANEOUS_QUERIES', text);

  function turn(lane: Lane, urgent: boolean, abandoned: AbortSignal): Promise<void> {
    if (closed) return Promise.reject(full('The server is stopping'));
    if (active[lane] < WIDTH[lane]) {
      active[lane] += 1;
      return Promise.resolve();
    }
    if (waiting() >= waitingMax) {
      return Promise.reject(full(`${waitingMax} statements wait already, try again later`));
    }
    return new Promise((resolve, reject) => {
      const line = lines[lane];
      const leave = (error: Error) => {
        const index = line.indexOf(entry);
        if (index >= 0) line.splice(index, 1);
        entry.refuse(error);
      };
      const onAbandoned = () => leave(new Error('the client went away'));
      const timer = setTimeout(
        () => leave(full(`No turn within ${waitMsMax / 1000} s, try again later`)),
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
          active[lane] += 1;
          resolve();
        },
        refuse: (error) => {
          settle();
          reject(error);
        },
      };
      abandoned.addEventListener('abort', onAbandoned);
      const before = urgent ? line.findIndex((other) => !other.urgent) : -1;
      if (before >= 0) line.splice(before, 0, entry);
      else line.push(entry);
    });
  }

  return {
    async run(lane, urgent, abandoned, work) {
      await turn(lane, urgent, abandoned);
      try {
        return await work();
      } finally {
        active[lane] -= 1;
        lines[lane].shift()?.begin();
        if (running() === 0) idle?.();
      }
    },
    waiting,
    running,
    async close() {
      closed = true;
      for (const line of Object.values(lines)) {
        for (const entry of line.splice(0)) entry.refuse(full('The server is stopping'));
      }
      if (running() > 0) await new Promise<void>((resolve) => (idle = resolve));
    },
  };
}
