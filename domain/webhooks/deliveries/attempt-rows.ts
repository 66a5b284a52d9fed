import { type ClickHouse, decimalSeconds } from '../../../lib/clickhouse/clickhouse-client.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { DELIVERY_LIMITS, type PostedMessage } from './stored-messages.ts';

export const OUTCOMES = ['delivered', 'retry', 'failed', 'expired'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** A line of the log of attempts; columns of `webhook_attempts`. */
export interface AttemptRow {
  readonly account_id: string;
  readonly endpoint_id: string;
  /** When the attempt began, µs since 1970. */
  readonly at: Micros;
  readonly message_id: string;
  readonly event_type: string;
  /** 0 = another event. */
  readonly pills: number;
  /** Which attempt at the message, from 1. */
  readonly attempt: number;
  readonly outcome: Outcome;
  /** HTTP status; 0 = there was no answer. */
  readonly status: number;
  /** One word; empty = success. */
  readonly reason: string;
  readonly detail: string;
  readonly latency_us: number;
  /** From the receive time of the oldest pill to the start; 0 for other events. */
  readonly since_received_us: number;
  readonly answer: string;
  /** The posted body at the first attempt; empty at others. */
  readonly body: string;
}

/** A line as readers get it, without the body. */
export type Attempt = Omit<AttemptRow, 'account_id' | 'endpoint_id' | 'body'>;

/** Runs one reading statement; its provider reports errors of ClickHouse. */
export type ReadRows = <T>(
  query: string,
  parameters: Readonly<Record<string, unknown>>,
) => Promise<T[]>;

/** Attempts per page. */
export const ATTEMPTS_PAGE = { max: 200, byDefault: 50 } as const;

/**
 * Writes lines in one insert.
 * @param clickhouse on the database of customers' data
 * @throws any ClickHouse error; the lines may have been stored anyway
 */
export async function insertAttempts(
  clickhouse: ClickHouse,
  rows: readonly AttemptRow[],
): Promise<void> {
  if (rows.length === 0) return;
  await clickhouse.insert({
    table: 'webhook_attempts',
    format: 'JSONEachRow',
    values: rows.map((row) => ({ ...row, at: decimalSeconds(row.at) })),
  });
}

/** Sort key of a line in the log of an endpoint, newest first. */
interface AttemptKey {
  readonly at: Micros;
  readonly attempt: number;
  readonly messageId: string;
}

/** Attempts at an endpoint, newest first. @throws what `read` throws */
export async function readAttempts(
  read: ReadRows,
  of: {
    readonly endpointId: string;
    readonly limit: number;
    /** `next` of the previous page, see `attemptToken`. */
    readonly before?: AttemptKey | undefined;
    readonly messageId?: string | undefined;
    readonly outcome?: Outcome | undefined;
    /** HTTP status; 0: no answer. */
    readonly status?: number | undefined;
    /** Begun at or after this time. */
    readonly from?: Micros | undefined;
    /** Begun before this time. */
    readonly to?: Micros | undefined;
  },
): Promise<readonly Attempt[]> {
  const { endpointId, limit, before, messageId, outcome, status, from, to } = of;
  const conditions = ['endpoint_id = {endpoint:String}'];
  const parameters: Record<string, unknown> = { endpoint: endpointId };
  if (messageId !== undefined) {
    conditions.push('message_id = {message:String}');
    parameters.message = messageId;
  }
  if (outcome !== undefined) {
    conditions.push('outcome = {outcome:String}');
    parameters.outcome = outcome;
  }
  if (status !== undefined) {
    conditions.push('status = {status:UInt16}');
    parameters.status = status;
  }
  if (from !== undefined) {
    conditions.push("at >= fromUnixTimestamp64Micro({from_at:Int64}, 'UTC')");
    parameters.from_at = from;
  }
  if (to !== undefined) {
    conditions.push("at < fromUnixTimestamp64Micro({to_at:Int64}, 'UTC')");
    parameters.to_at = to;
  }
  if (before !== undefined) {
    // The sort order of the table can use only the first condition.
    conditions.push(
      `at <= ${BEFORE_AT}`,
      `(at, attempt, message_id) < (${BEFORE_AT}, {attempt:UInt16}, {before:String})`,
    );
    parameters.before_at = before.at;
    parameters.attempt = before.attempt;
    parameters.before = before.messageId;
  }
  const rows = await read<Omit<Attempt, 'at'> & { readonly begun: Micros }>(
    `SELECT toUnixTimestamp64Micro(at) AS begun, message_id, event_type, pills, attempt, outcome,
            status, reason, detail, latency_us, since_received_us, answer
     FROM webhook_attempts WHERE ${conditions.join(' AND ')}
     ORDER BY at DESC, attempt DESC, message_id DESC
     LIMIT ${Math.max(1, Math.min(limit, ATTEMPTS_PAGE.max))}`,
    parameters,
  );
  return rows.map(({ begun, ...row }) => ({ ...row, at: begun }));
}

const BEFORE_AT = "fromUnixTimestamp64Micro({before_at:Int64}, 'UTC')";

/** A message as it was posted within the last 30 days; undefined = none with this id. */
export async function readPosted(
  read: ReadRows,
  endpointId: string,
  messageId: string,
): Promise<PostedMessage | undefined> {
  const [row] = await read<{ event_type: string; body: string; pills: number }>(
    `SELECT event_type, body, pills FROM webhook_attempts
     WHERE endpoint_id = {endpoint:String} AND message_id = {message:String} AND body != ''
       AND at > now() - INTERVAL ${DELIVERY_LIMITS.keptDays} DAY
     ORDER BY at DESC LIMIT 1`,
    { endpoint: endpointId, message: messageId },
  );
  if (row === undefined) return undefined;
  return { id: messageId, type: row.event_type, body: row.body, pills: row.pills };
}

const TOKEN = /^(\d{1,16})-(\d{1,5})-([\w.:~-]{1,100})$/;

/** Token of the page that begins after this line. */
export function attemptToken({ at, attempt, message_id: messageId }: Attempt): string {
  return `${at}-${attempt}-${messageId}`;
}

/** @returns undefined when the text is no token */
export function readAttemptToken(text: string): AttemptKey | undefined {
  const [, at, attempt, messageId] = TOKEN.exec(text) ?? [];
  if (messageId === undefined || Number(attempt) > 65_535) return undefined;
  return { at: Number(at), attempt: Number(attempt), messageId };
}
