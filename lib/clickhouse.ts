import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  createClient,
} from '@clickhouse/client';

export type ClickHouse = ClickHouseClient;

/** ClickHouse's name of what it answered, e.g. `TIMEOUT_EXCEEDED`; undefined: no answer of its. */
export function clickHouseErrorName(error: unknown): string | undefined {
  return error instanceof ClickHouseError ? error.type : undefined;
}

/** Name of the database: one a namespace. */
export function databaseName(namespace: string): string {
  return namespace === '' ? 'pillole' : `pillole_${namespace.replaceAll(/[^a-zA-Z0-9_]/g, '_')}`;
}

/** A request without an answer in this time is of unknown outcome. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** Statements of one client that are under way; further ones wait for a connection. */
const CONNECTIONS_MAX = 4;

/** Opens a client whose unqualified tables are those of `database`. */
export function openClickHouse(options: {
  readonly url: string;
  readonly database: string;
  /** ms; 30,000 by default. */
  readonly requestTimeoutMs?: number;
  /** 4 by default. */
  readonly connectionsMax?: number;
}): ClickHouse {
  return createClient({
    url: options.url,
    database: options.database,
    request_timeout: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
    max_open_connections: options.connectionsMax ?? CONNECTIONS_MAX,
    // Its errors reach us as rejections, and are logged once where they are decided on.
    log: { level: ClickHouseLogLevel.OFF },
    // Our inserts carry their own time-out and retry; a pooled socket that the server has closed
    // must not cost one of them.
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
    clickhouse_settings: { date_time_input_format: 'best_effort' },
  });
}

/** µs since 1970 as ClickHouse reads them into DateTime64(6), also as a parameter: decimal seconds. */
export function decimalSeconds(micros: number): string {
  const whole = Math.floor(micros / 1e6);
  // Ten digits of seconds: with fewer the parser takes the text for a date.
  return `${String(whole).padStart(10, '0')}.${String(micros - whole * 1e6).padStart(6, '0')}`;
}
