import { setTimeout as sleep } from 'node:timers/promises';
import {
  DeliveryError,
  type Piece,
  type Publisher,
} from '../../domain/destinations/destination-type.ts';
import type { Log } from '../../lib/log/log.ts';
import { backoffMs } from '../../lib/timing/backoff.ts';
import type { AttemptLog } from './attempt-log.ts';
import type { Health } from './health.ts';
import { LIMITS } from './limits.ts';
import type { Cut } from './partition.ts';
import { LeaseLostError, type PositionStore, type StoredPosition } from './position-store.ts';

interface DeliveryDeps {
  readonly destinationId: string;
  readonly type: string;
  readonly epoch: string;
  readonly store: PositionStore;
  readonly health: Health;
  readonly attempts: AttemptLog;
  readonly log: Log;
  /** By the newest settings and credentials. */
  publisher(): Publisher;
  /** Aborted when settings or credentials change, which ends a wait. */
  changed(): AbortSignal;
}

export type Delivery = ReturnType<typeof createDelivery>;

/**
 * Delivers the pieces of one partition, one after another: the end of a piece is written down, the
 * piece is delivered until the destination holds it, then the position moves. Whatever is killed in
 * between, the same piece is delivered again.
 */
export function createDelivery(deps: DeliveryDeps, partition: number, stored: StoredPosition) {
  const { store } = deps;
  let firstOffset = stored.nextOffset;
  let previousEnd = stored.publishedEnd;
  let writtenAtMs = performance.now();

  const publish = async (cut: Cut, signal: AbortSignal) => {
    const { endOffset, filter, pills, appendedAt } = cut;
    const first = firstOffset;
    await persist(deps, signal, () => store.plan(partition, first, { endOffset, filter }));
    const { destinationId, epoch } = deps;
    const range = { partition, firstOffset: first, endOffset, previousEnd };
    const piece = { destinationId, epoch, ...range, appendedAt, pills };
    await deliverPiece(deps, piece, signal);
    previousEnd = endOffset;
  };

  return async (cut: Cut, signal: AbortSignal): Promise<void> => {
    const { endOffset: nextOffset, pills, snapshot } = cut;
    const newest = Math.max(...receivedTimes(pills));
    if (pills.length > 0) await publish(cut, signal);
    firstOffset = nextOffset;
    const isDue = performance.now() - writtenAtMs > LIMITS.positionIntervalMs;
    if (pills.length === 0 && snapshot === undefined && !isDue) return;
    const delivered = pills.length === 0 ? undefined : { receivedAt: newest };
    const progress = { nextOffset, delivered, snapshot };
    await persist(deps, signal, () => store.advance(partition, progress));
    writtenAtMs = performance.now();
  };
}

function receivedTimes(pills: Cut['pills']): number[] {
  return pills.map(({ received_at: receivedAt }) => receivedAt);
}

/** Retries until the destination holds the piece. */
async function deliverPiece(deps: DeliveryDeps, piece: Piece, signal: AbortSignal): Promise<void> {
  const { destinationId, type, attempts, health, log } = deps;
  for (let failures = 0; ; failures += 1) {
    signal.throwIfAborted();
    const changed = deps.changed();
    const began = new Date();
    const of = { destinationId, type, began, pills: piece.pills.length };
    try {
      const { bytes } = await deps.publisher().publish(piece, signal);
      health.delivered();
      attempts.add({ ...of, bytes, error: undefined });
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof DeliveryError) {
        health.failed();
        attempts.add({ ...of, bytes: 0, error });
        log.info({ destinationId, reason: error.reason, status: error.status }, 'not delivered');
      } else {
        // Ours: the owner of the destination can do nothing about it.
        health.fault();
        log.error({ err: error, destinationId }, 'a piece cannot be delivered');
      }
    }
    await pause(failures, AbortSignal.any([signal, changed]));
  }
}

/** Retries a write of PostgreSQL, whose failures are ours. @throws LeaseLostError */
async function persist(
  { health, log, destinationId }: DeliveryDeps,
  signal: AbortSignal,
  write: () => Promise<void>,
): Promise<void> {
  for (let failures = 0; ; failures += 1) {
    signal.throwIfAborted();
    try {
      await write();
      health.working();
      return;
    } catch (error) {
      if (error instanceof LeaseLostError) throw error;
      health.fault();
      log.warn({ err: error, destinationId }, 'a position cannot be written; waiting');
    }
    await pause(failures, signal);
  }
}

/** Full jitter, but never less than half of the first wait. */
async function pause(failures: number, signal: AbortSignal): Promise<void> {
  const waitMs = Math.max(LIMITS.retryMs.firstMs / 2, backoffMs(failures, LIMITS.retryMs));
  await sleep(waitMs, undefined, { signal }).catch(() => undefined);
}
