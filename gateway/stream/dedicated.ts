import { isOrder, type Order, type Report } from '../../lib/dedicated/channel.ts';
import type { Connection } from './live/connection.ts';
import type { StreamServer } from './wire/server.ts';

export interface Followed {
  readonly sessions: { all(): Iterable<Connection>; readonly count: number };
  /** Last offset of each partition that was handed to the sockets. */
  readonly offsets: () => ReadonlyMap<number, number>;
  readonly notReady: () => string | undefined;
  readonly nowMs: () => number;
  readonly server: Pick<StreamServer, 'stopListening'>;
}

/** For the last error frames to leave before the process stops. */
const LAST_FRAMES_MS = 100;

/**
 * A dedicated process ends, in order, when the channel to its supervisor breaks: the supervisor is
 * gone, and its successor needs the port. Without a channel, as by hand, it does nothing.
 */
export function endWithSupervisor(): void {
  if (process.send !== undefined) process.once('disconnect', stopSelf);
}

/** Answers the supervisor's questions, and does what it orders. */
export function followSupervisor(followed: Followed): void {
  process.on('message', (message) => {
    if (!isOrder(message)) return;
    if (message.order === 'report') process.send?.(reportOf(followed, message.id), () => undefined);
    else endAll(followed, message);
  });
}

function reportOf({ sessions, offsets, notReady, nowMs }: Followed, id: number): Report {
  const now = nowMs();
  let queueBytes = 0;
  let queueMs = 0;
  for (const connection of sessions.all()) {
    queueBytes += connection.queueBytes;
    queueMs = Math.max(queueMs, connection.outbox.queueMs(now));
  }
  return {
    ...{ id, notReady: notReady(), connections: sessions.count, queueBytes },
    queueMs: Math.round(queueMs),
    offsets: [...offsets()],
  };
}

function endAll({ sessions, server }: Followed, order: Order & { order: 'end' }): void {
  server.stopListening();
  for (const connection of [...sessions.all()]) connection.fail(order.code, order.message);
  setTimeout(stopSelf, LAST_FRAMES_MS);
}

function stopSelf(): void {
  process.kill(process.pid, 'SIGTERM');
}
