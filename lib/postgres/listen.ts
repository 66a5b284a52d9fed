import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { backoffMs } from '../timing/backoff.ts';
import { connectionConfig, type DatabaseOptions } from './database.ts';

const BACKOFF = { firstMs: 100, maxMs: 2_000 };
/** A connection that does not answer within this is replaced. */
const ANSWER_TIMEOUT_MS = 1_000;
/** How often an idle connection is probed: a cut network link raises no error. */
const PROBE_INTERVAL_MS = 2_000;

interface ListenOptions extends DatabaseOptions {
  readonly channel: string;
  /** One NOTIFY, in order of commit. */
  readonly onNotify: (payload: string) => void;
}

/**
 * Listens on a channel over a dedicated connection, which is replaced whenever it breaks or hangs.
 * Notifications sent in between are lost; a caller that needs all of them also reads a table.
 */
export function listen(options: ListenOptions): { close(): Promise<void> } {
  const closing = new AbortController();
  const running = run(options, closing.signal);
  return {
    close() {
      closing.abort();
      return running;
    },
  };
}

async function run(options: ListenOptions, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await listenOnce(options, signal, () => {
        failures = 0;
      });
    } catch (error) {
      if (signal.aborted) return;
      if (failures === 0)
        options.log.warn({ err: error }, 'notifications from the database are interrupted');
      const waitMs = Math.max(BACKOFF.firstMs / 2, backoffMs(failures, BACKOFF));
      failures += 1;
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** @throws when the connection breaks or hangs */
async function listenOnce(
  options: ListenOptions,
  signal: AbortSignal,
  onListening: () => void,
): Promise<void> {
  const client = new pg.Client({
    ...connectionConfig(options),
    connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
  });
  const ended = new AbortController();
  const waking = AbortSignal.any([signal, ended.signal]);
  let failure: Error | undefined;
  client.on('error', (error) => {
    failure = error;
    ended.abort();
  });
  client.on('end', () => ended.abort());
  client.on('notification', ({ payload }) => options.onNotify(payload ?? ''));
  try {
    await client.connect();
    await client.query(`LISTEN ${pg.escapeIdentifier(options.channel)}`);
    onListening();
    while (!waking.aborted) {
      await sleep(PROBE_INTERVAL_MS, undefined, { signal: waking }).catch(() => undefined);
      if (!waking.aborted) await client.query('SELECT 1');
    }
    if (!signal.aborted) throw failure ?? new Error('the connection ended');
  } finally {
    // A hung connection does not answer the closing message either.
    await Promise.race([client.end().catch(() => undefined), sleep(ANSWER_TIMEOUT_MS)]);
  }
}
