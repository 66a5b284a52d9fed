import {
  isSupervisorCommand,
  type ProcessReport,
  type SupervisorCommand,
} from '../../domain/dedicated/channel.ts';
import type { Connection } from './hub/stream-connection.ts';
import type { StreamServer } from './wire/websocket-server.ts';

interface FollowOptions {
  readonly connections: { all(): Iterable<Connection>; readonly count: number };
  /** Last offset of each partition that was sent to the sockets. */
  readonly offsets: ReadonlyMap<number, number>;
  readonly notReady: () => string | undefined;
  readonly nowMs: () => number;
  readonly server: Pick<StreamServer, 'stopListening'>;
}

/** Time for the last error frames to leave before the process stops. */
const LAST_FRAMES_MS = 100;

/**
 * Stops a dedicated process in order when the channel to its supervisor breaks: the supervisor is
 * gone, and its successor needs the port. A process without a channel is not affected.
 */
export function endWithSupervisor(): void {
  if (process.send !== undefined) process.once('disconnect', stopSelf);
}

/** Answers the supervisor's requests, and executes its commands. */
export function followSupervisor(options: FollowOptions): void {
  process.on('message', (message) => {
    if (!isSupervisorCommand(message)) return;
    if (message.command === 'end') endAll(options, message);
    else process.send?.(reportOf(options, message.id), () => undefined);
  });
}

function reportOf(
  { connections, offsets, notReady, nowMs }: FollowOptions,
  id: number,
): ProcessReport {
  const now = nowMs();
  let queueBytes = 0;
  let queueMs = 0;
  for (const connection of connections.all()) {
    queueBytes += connection.queueBytes;
    queueMs = Math.max(queueMs, connection.outbox.queueMs(now));
  }
  return {
    id,
    notReady: notReady(),
    connections: connections.count,
    queueBytes,
    queueMs: Math.round(queueMs),
    offsets: [...offsets],
  };
}

function endAll(
  { connections, server }: FollowOptions,
  { code, message }: SupervisorCommand & { command: 'end' },
): void {
  server.stopListening();
  for (const connection of [...connections.all()]) connection.fail(code, message);
  setTimeout(stopSelf, LAST_FRAMES_MS);
}

function stopSelf(): void {
  process.kill(process.pid, 'SIGTERM');
}
