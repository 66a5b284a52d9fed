import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from './connection.ts';
import { drainFrame } from './frames.ts';

export interface DrainOptions {
  readonly connections: () => Iterable<Connection>;
  /** Brings all published pills into the outboxes. */
  readonly flush: () => void;
  readonly position: () => string;
  readonly drainMs: number;
  readonly reconnectJitterMs: number;
}

const STEP_MS = 50;
/** The first close waits a little, so that every client has read its `drain` frame. */
const FIRST_CLOSE_MS = 250;
/** For the last close frames to leave. */
const LAST_FRAMES_MS = 100;

/**
 * Tells every client that this process stops, then closes them one after the other, each with a
 * last heartbeat before: its position is where to go on, without loss or double.
 */
export async function drainConnections(options: DrainOptions): Promise<void> {
  const waiting = [...options.connections()];
  if (waiting.length === 0) return;
  options.flush();
  const position = options.position();
  for (const connection of waiting) {
    const jitterMs = Math.round(Math.random() * options.reconnectJitterMs);
    connection.tell(drainFrame(jitterMs, options.drainMs, position));
  }
  await sleep(FIRST_CLOSE_MS);
  const steps = Math.ceil((options.drainMs - FIRST_CLOSE_MS - LAST_FRAMES_MS) / STEP_MS);
  // Few clients need no long farewell: one a step, or as many as the time asks for.
  const perStep = Math.ceil(waiting.length / steps);
  for (let at = 0; at < waiting.length; at += perStep) {
    options.flush();
    for (const connection of waiting.slice(at, at + perStep)) {
      connection.beat();
      connection.close('drain');
    }
    await sleep(STEP_MS);
  }
  await sleep(LAST_FRAMES_MS);
}
