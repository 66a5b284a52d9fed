import type { Percentiles } from '../histogram.ts';

/** One run of the load client, told to it by its parent. */
export interface AccessLoad {
  readonly port: number;
  /** Sent as X-API-Key; null sends none. */
  readonly key: string | null;
  /** Asked for in turn. */
  readonly symbols: readonly string[];
  /** Keep-alive connections, one request at a time on each. */
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second, open loop; null = closed loop, as fast as answers come. */
  readonly perS: number | null;
}

/** What the load client saw of its run. */
export interface AccessLoadReport {
  /** Requests answered with 200. */
  readonly ok: number;
  readonly seconds: number;
  readonly perS: number;
  /** Other answers and broken connections, counted. */
  readonly failures: Readonly<Record<string, number>>;
  /** CPU seconds of the load client itself. */
  readonly cpuS: number;
  /** Planned send to the whole answer, µs; open loop alone. */
  readonly answered: Percentiles | null;
  readonly answeredEncoded: string | null;
  /** How late requests were ready to be sent against the plan, µs; open loop alone. */
  readonly lateness: Percentiles | null;
}

/** Bytes of a request for the latest pill of a symbol. */
export function requestOf(symbol: string, key: string | null): Buffer {
  const lines = [
    `GET /api/pills/latest?symbol=${encodeURIComponent(symbol)} HTTP/1.1`,
    'host: 127.0.0.1',
    ...(key === null ? [] : [`x-api-key: ${key}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** The middle value; the mean of both where there are two. NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (Number.isInteger(middle)) return (sorted[middle - 1]! + sorted[middle]!) / 2;
  return sorted[Math.floor(middle)]!;
}
