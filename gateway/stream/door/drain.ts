import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from '../live/connection.ts';

export interface DrainOptions {
  readonly connections: () => Iterable<Connection>;
  /** Brings all published pills into the outboxes. */
  readonly flush: () => void;
  /** All is closed after this, but for one slow turn of the event loop. */
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
  // By the clock: on a busy machine every step takes longer than it was asked to.
  const lastCloseMs = performance.now() + options.drainMs - LAST_FRAMES_MS;
  for (const connection of waiting) {
    const jitterMs = Math.round(Math.random() * options.reconnectJitterMs);
    connection.drain(jitterMs, options.drainMs);
  }
  await sleep(FIRST_CLOSE_MS);
  for (let at = 0; at < waiting.length; ) {
    options.flush();
    // Few clients need no long farewell: one a step, or as many as the time asks for.
    const stepsLeft = Math.max(1, Math.floor((lastCloseMs - performance.now()) / STEP_MS));
    const until = at + Math.ceil((waiting.length - at) / stepsLeft);
    for (const connection of waiting.slice(at, until)) {
      connection.beat();
      connection.close('drain');
    }
    at = until;
    if (at < waiting.length) await sleep(STEP_MS);
  }
  await sleep(LAST_FRAMES_MS);
}
