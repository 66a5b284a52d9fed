import type { Percentiles } from '../histogram.ts';
import type { TimelineSecond } from '../timeline.ts';

/** What the requests of a run are. Symbols are taken in turn. */
export type Asked =
  /** The latest pill of a symbol; `key` is sent as X-API-Key, null sends none. */
  | { readonly kind: 'read'; readonly symbols: readonly string[]; readonly key: string | null }
  /** `pills` new pills a request, ids beginning with `run`: 1 goes alone, more as a batch. */
  | {
      readonly kind: 'write';
      readonly symbols: readonly string[];
      readonly run: string;
      readonly pills: number;
    };

/** One run of the load client, told to it by its parent. */
export interface HttpLoad {
  readonly port: number;
  readonly asked: Asked;
  /** Keep-alive connections, one request at a time on each. */
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second, open loop; null = closed loop, as fast as answers come. */
  readonly perS: number | null;
}

/** What the load client saw of its run. */
export interface HttpLoadReport {
  /** Requests answered with 200; of a batch, with every row ok as well. */
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
  readonly timeline: readonly TimelineSecond[];
  /** How late requests were ready to be sent against the plan, µs; open loop alone. */
  readonly lateness: Percentiles | null;
}

/** Requests that were not answered as they should. */
export function failedOf({ failures }: HttpLoadReport): number {
  return Object.values(failures).reduce((sum, count) => sum + count, 0);
}
