import { monotonicMicros } from '../clock.ts';
import { createLatencies, type Percentiles } from '../histogram.ts';
import { type Connection, connect } from '../http-load/connection.ts';
import type { LoadClient } from '../http-load/load.ts';
import { requestOf } from '../http-load/requests.ts';
import type { MadeKey } from './access-rows.ts';
import { type AccessRun, type RunOptions, runRounds, type Target } from './run.ts';
import type { Stage } from './stage.ts';

/** What a read costs with so many keys in the table. Latencies in µs, one request at a time. */
export interface SizeReport {
  readonly keys: number;
  /** Reads with a key that the process has not seen: one look-up each. */
  readonly first: Percentiles;
  readonly firstEncoded: string;
  /** The same keys at once again, from memory. */
  readonly again: Percentiles;
  readonly againEncoded: string;
  readonly failed: number;
  readonly rounds: readonly (readonly AccessRun[])[];
}

export interface SizesOptions {
  /** Rows of the table of keys, rising. */
  readonly sizes: readonly number[];
  /** Keys to look up at each size. */
  readonly lookUps: number;
  readonly rounds: number;
  readonly run: RunOptions;
  /** The only key of the table of one; the API knows it. */
  readonly onlyKey: MadeKey;
  /** Account without a daily limit, whose keys are looked up in the table of one. */
  readonly lookUpAccountId: string;
  readonly targets: readonly Target[];
  readonly say: (line: string) => void;
}

/** Measures first look-ups and the hot path at each size of the table of keys. */
export async function measureSizes(
  stage: Stage,
  client: LoadClient,
  options: SizesOptions,
): Promise<SizeReport[]> {
  const { rows } = stage;
  const { onlyKey, lookUps, say } = options;
  const reports: SizeReport[] = [];
  for (const size of options.sizes) {
    say(`a table of ${size} keys`);
    let keys: readonly string[] | undefined;
    if (size === 1) await rows.keepOnly(onlyKey);
    else keys = await rows.fill(size, lookUps);
    const keyCount = await rows.count();
    const rounds = await runRounds(stage, client, options.targets, options.rounds, options.run);
    // A table of one holds its keys one after the other.
    const nextKey = (i: number) => keys?.[i] ?? rows.turnInto(onlyKey.id, options.lookUpAccountId);
    const seen = await timeLookUps(stage, lookUps, nextKey);
    if (keys === undefined) await rows.turnBack(onlyKey);
    const p50 = (seen.first.p50 / 1_000).toFixed(2);
    say(`  ${keyCount} keys: first look-up p50 ${p50} ms`);
    reports.push({ keys: keyCount, ...seen, rounds });
  }
  return reports;
}

async function timeLookUps(
  { api, symbols }: Stage,
  count: number,
  nextKey: (i: number) => string | Promise<string>,
): Promise<Omit<SizeReport, 'keys' | 'rounds'>> {
  const first = createLatencies();
  const again = createLatencies();
  const connection = await connect(api.port);
  let failed = 0;
  try {
    for (let i = 0; i < count; i += 1) {
      const request = requestOf(symbols[i % symbols.length]!, await nextKey(i));
      for (const latencies of [first, again]) {
        const { status, micros } = await ask(connection, request);
        if (status === 200) latencies.record(micros);
        else failed += 1;
      }
    }
  } finally {
    connection.close();
  }
  return {
    first: first.percentiles(),
    firstEncoded: first.encoded(),
    again: again.percentiles(),
    againEncoded: again.encoded(),
    failed,
  };
}

function ask(connection: Connection, request: Buffer) {
  const startMicros = monotonicMicros();
  return new Promise<{ readonly status: number; readonly micros: number }>((resolve) => {
    connection.ask(request, (status) => {
      resolve({ status, micros: monotonicMicros() - startMicros });
    });
  });
}
