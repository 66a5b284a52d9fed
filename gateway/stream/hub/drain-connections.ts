import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from './stream-connection.ts';

const STEP_MS = 50;
/** The first close waits, so that every client has read its `drain` frame. */
const FIRST_CLOSE_MS = 250;
/** Time for the last close frames to leave. */
const LAST_FRAMES_MS = 100;

/**
 * Announces the stop to every client, then closes them one after another, each after a last
 * heartbeat: from its position a client resumes without loss or duplicates.
 */
export async function drainConnections(options: {
  readonly connections: () => Iterable<Connection>;
  /** Moves all published pills into the outboxes. */
  readonly flush: () => void;
  /** All connections are closed after this time, except for one slow turn of the event loop. */
  readonly drainMs: number;
  readonly reconnectJitterMs: number;
}): Promise<void> {
  const waiting = [...options.connections()];
  if (waiting.length === 0) return;
  // By the clock, because on a busy machine every sleep takes longer than requested.
  const lastCloseMs = performance.now() + options.drainMs - LAST_FRAMES_MS;
  for (const connection of waiting) {
    const jitterMs = Math.round(Math.random() * options.reconnectJitterMs);
    connection.drain(jitterMs, options.drainMs);
  }
  await sleep(FIRST_CLOSE_MS);
  for (let at = 0; at < waiting.length; ) {
    options.flush();
    // Few clients are closed one per step, many in as few steps as the remaining time allows.
    const stepsLeft = Math.max(1, Math.floor((lastCloseMs - performance.now()) / STEP_MS));
    const until = at + Math.ceil((waiting.length - at) / stepsLeft);
    for (const connection of waiting.slice(at, until)) {
      connection.sendHeartbeat();
      connection.close('drain');
    }
    at = until;
    if (at < waiting.length) await sleep(STEP_MS);
  }
  await sleep(LAST_FRAMES_MS);
}
