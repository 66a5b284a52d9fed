import type { StatementPool } from '../../lib/postgres/statement-pool.ts';
import { CLEARED_AFTER_S, COUNTED_WRITES, WRITE_INTERVAL_MS } from './session-timing.ts';

const COUNTED_S = (COUNTED_WRITES * WRITE_INTERVAL_MS) / 1_000;

/** An open socket as written by its process. */
export interface OpenSession {
  readonly session: string;
  readonly accountId: string;
  /** Desk of the key; undefined = none. */
  readonly deskId?: string | undefined;
  readonly sessionHash: Buffer | undefined;
  readonly hint: string;
  readonly address: string;
  readonly encoding: 'json' | 'avro';
  readonly openedAt: Date;
  readonly queueMs: number;
  readonly queueBytes: number;
}

export type SessionRegistry = ReturnType<typeof createSessionRegistry>;

/**
 * The table of open sockets over all processes, as used by one process. Methods throw any database error.
 * Two processes may briefly both see an account over its limit, so `overLimit` is a reason to act only
 * if it persists.
 * @param process random name of this run of the process
 * @param countedFrom the smallest connection limit that any account has
 */
export function createSessionRegistry(process: string, pool: StatementPool, countedFrom: number) {
  return {
    /** Writes a heartbeat and the changes since the last successful write. */
    async write({
      opened,
      closed,
      lags,
    }: {
      readonly opened: readonly OpenSession[];
      readonly closed: readonly string[];
      readonly lags: readonly Pick<OpenSession, 'session' | 'queueMs' | 'queueBytes'>[];
    }): Promise<void> {
      await pool.query(ALIVE, [process, CLEARED_AFTER_S]);
      if (closed.length > 0) await pool.query(CLOSE, [process, closed]);
      if (opened.length > 0) await pool.query(OPEN, openValues(process, opened));
      if (lags.length > 0) {
        await pool.query(LAG, [
          process,
          lags.map(({ session }) => session),
          lags.map(({ queueMs }) => queueMs),
          lags.map(({ queueBytes }) => queueBytes),
        ]);
      }
    },
    /** Reads the sockets of this process on which it must act. */
    async read() {
      const ends = await pool.query<{ session: string; why: 'asked' | 'signed_out' }>(ENDS, [
        process,
      ]);
      const overLimit = await pool.query<OverLimitRow>(OVER_LIMIT, [
        process,
        COUNTED_S,
        countedFrom,
      ]);
      const ofDesks = await pool.query<OverLimitRow>(DESK_OVER_LIMIT, [process, COUNTED_S]);
      return {
        /** Sockets that must end: the owner asked for it, or the sign-in has ended. */
        ends,
        /**
         * Sockets whose account has `before` older ones over all processes, if that is ≥
         * `countedFrom`; and those whose desk has at least `deskMax` older ones. A desk comes last, so
         * that its limit counts for a socket that is over both.
         */
        overLimit: [...overLimit, ...ofDesks].map(({ session, before, desk_max: deskMax }) => {
          return { session, before: Number(before), deskMax };
        }),
      };
    },
    /** Removes the process and all its sockets. */
    async leave(): Promise<void> {
      await pool.query('DELETE FROM stream_processes WHERE process = $1', [process]);
    },
  };
}

interface OverLimitRow {
  readonly session: string;
  readonly before: string;
  /** Limit of the desk; absent where the account is over its limit. */
  readonly desk_max?: number;
}

const ALIVE = `
  WITH gone AS (
    DELETE FROM stream_processes
    WHERE process <> $1 AND seen_at < now() - make_interval(secs => $2)
  )
  INSERT INTO stream_processes (process, seen_at) VALUES ($1, clock_timestamp())
  ON CONFLICT (process) DO UPDATE SET seen_at = clock_timestamp()`;

const CLOSE = 'DELETE FROM stream_sessions WHERE process = $1 AND session = ANY($2::text[])';

// An account that was erased meanwhile must not make the whole statement fail.
const OPEN = `
  INSERT INTO stream_sessions (process, session, account_id, session_hash, hint, address, encoding,
    opened_at, queue_ms, queue_bytes, desk_id)
  SELECT $1, n.* FROM unnest($2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[],
    $7::text[], $8::timestamptz[], $9::int[], $10::bigint[], $11::text[]) AS
    n(session, account_id, session_hash, hint, address, encoding, opened_at, queue_ms, queue_bytes,
      desk_id)
  WHERE EXISTS (SELECT FROM accounts WHERE id = n.account_id)
  ON CONFLICT (session) DO NOTHING`;

const LAG = `
  UPDATE stream_sessions s SET queue_ms = n.queue_ms, queue_bytes = n.queue_bytes
  FROM unnest($2::text[], $3::int[], $4::bigint[]) AS n(session, queue_ms, queue_bytes)
  WHERE s.process = $1 AND s.session = n.session`;

const ENDS = `
  SELECT s.session, CASE WHEN s.end_asked_at IS NULL THEN 'signed_out' ELSE 'asked' END AS why
  FROM stream_sessions s
  WHERE s.process = $1 AND (s.end_asked_at IS NOT NULL OR s.session_hash IS NOT NULL AND NOT EXISTS (
    SELECT FROM sessions t WHERE t.hash = s.session_hash AND t.expires_at > now()))`;

const OVER_LIMIT = `
  SELECT session, before FROM (
    SELECT s.session, s.process, row_number()
      OVER (PARTITION BY s.account_id ORDER BY s.opened_at, s.session) - 1 AS before
    FROM stream_sessions s JOIN stream_processes p ON p.process = s.process
    WHERE p.seen_at > now() - make_interval(secs => $2) AND s.account_id IN (
      SELECT account_id FROM stream_sessions
      WHERE account_id IN (SELECT account_id FROM stream_sessions WHERE process = $1)
      GROUP BY account_id
      HAVING count(*) > $3 AND bool_or(process = $1) AND bool_or(process <> $1))
  ) AS ranked
  WHERE process = $1 AND before >= $3`;

/** Most desks have no limit, and then cost only the look at the sockets of this process. */
const DESK_OVER_LIMIT = `
  SELECT session, before, desk_max FROM (
    SELECT s.session, s.process, d.connections_max AS desk_max, row_number()
      OVER (PARTITION BY s.desk_id ORDER BY s.opened_at, s.session) - 1 AS before
    FROM stream_sessions s
    JOIN stream_processes p ON p.process = s.process
    JOIN desks d ON d.id = s.desk_id AND d.connections_max IS NOT NULL
    WHERE p.seen_at > now() - make_interval(secs => $2) AND s.desk_id IN (
      SELECT desk_id FROM stream_sessions WHERE process = $1 AND desk_id IS NOT NULL)
  ) AS ranked
  WHERE process = $1 AND before >= desk_max`;

function openValues(process: string, opened: readonly OpenSession[]): readonly unknown[] {
  const column = <K extends keyof OpenSession>(name: K) => opened.map((one) => one[name]);
  return [
    process,
    column('session'),
    column('accountId'),
    opened.map(({ sessionHash }) => sessionHash ?? null),
    column('hint'),
    column('address'),
    column('encoding'),
    column('openedAt'),
    column('queueMs'),
    column('queueBytes'),
    opened.map(({ deskId }) => deskId ?? null),
  ];
}
