import { readFileSync } from 'node:fs';
import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  createClient,
} from '@clickhouse/client';

export type ClickHouse = ClickHouseClient;
export type { ClickHouseSettings } from '@clickhouse/client';

/** ClickHouse's name of the error, e.g. `TIMEOUT_EXCEEDED`; undefined when it did not answer. */
export function clickHouseErrorName(error: unknown): string | undefined {
  return error instanceof ClickHouseError ? error.type : undefined;
}

/** Name of the database of a namespace with the market, from which analysts may read. */
export function databaseName(namespace: string): string {
  return namespace === '' ? 'pillole' : `pillole_${namespace.replaceAll(/[^a-zA-Z0-9_]/g, '_')}`;
}

/** Name of the database of a namespace with the data of customers, which analysts may not read. */
export function customersDatabaseName(namespace: string): string {
  return `customers_${databaseName(namespace)}`;
}

/** The outcome of a request without an answer in this time is unknown. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** Concurrent statements of one client; further ones wait for a connection. */
const CONNECTIONS_MAX = 4;

/** Opens a client that looks up unqualified table names in `database`. */
export function openClickHouse(options: {
  /** With user and password; https is verified by the authorities of the PEM file `?sslrootcert=`. */
  readonly url: string;
  readonly database: string;
  /** ms; 30,000 by default. */
  readonly requestTimeoutMs?: number;
  /** 4 by default. */
  readonly connectionsMax?: number;
}): ClickHouse {
  const url = new URL(options.url);
  const file = url.searchParams.get('sslrootcert');
  url.searchParams.delete('sslrootcert');
  return createClient({
    url,
    ...(file === null ? {} : { tls: { ca_cert: readFileSync(file) } }),
    database: options.database,
    request_timeout: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
    max_open_connections: options.connectionsMax ?? CONNECTIONS_MAX,
    // Errors arrive as rejections and are logged once, where they are handled.
    log: { level: ClickHouseLogLevel.OFF },
    // Inserts have their own time-out and retry; a pooled socket that the server has closed must
    // not fail one of them.
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
    clickhouse_settings: { date_time_input_format: 'best_effort' },
  });
}

/** µs since 1970 as decimal seconds, which ClickHouse reads into DateTime64(6), parameters too. */
export function decimalSeconds(micros: number): string {
  const whole = Math.floor(micros / 1e6);
  // Ten digits of seconds: the parser reads fewer digits as a date.
  return `${String(whole).padStart(10, '0')}.${String(micros - whole * 1e6).padStart(6, '0')}`;
}
