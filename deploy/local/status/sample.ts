/** What the platform has counted up to a moment. */
export interface Sample {
  /** Monotonic ms. */
  readonly atMs: number;
  /** Pills that reached ingest, and those of them that the log has; in all. */
  readonly received: number;
  readonly acknowledged: number;
  /** Records that a process has still to read, by process. */
  readonly lag: Readonly<Record<string, number>>;
  readonly sockets: number;
  /** Pills handed to sockets, in all. */
  readonly deliveries: number;
  /** From receive to the first send: by upper bound in seconds, how many took no longer. */
  readonly receiveToSend: ReadonlyMap<number, number>;
  /** Processes that did not answer. */
  readonly silent: readonly string[];
}

interface Metric {
  readonly name: string;
  readonly values: readonly {
    readonly value: number;
    readonly metricName?: string;
    readonly labels: Readonly<Record<string, string | number>>;
  }[];
}

const ANSWER_TIMEOUT_MS = 1_000;
/** Outcomes of ingest that stand for a pill in the log. */
const STORED: ReadonlySet<unknown> = new Set(['ok', 'replayed']);

/**
 * Asks processes for their metrics. Never rejects: one that does not answer is named, and counts
 * nothing. @param places address of /metrics by the name of the process
 */
export async function takeSample(places: ReadonlyMap<string, string>): Promise<Sample> {
  const asked = await Promise.all(
    [...places].map(async ([name, url]) => [name, await readMetrics(url)] as const),
  );
  const all = asked.flatMap(([, metrics]) => metrics ?? []);
  const values = (name: string) =>
    all.filter((metric) => metric.name === name).flatMap((metric) => metric.values);
  const sum = (name: string, wanted: (outcome: unknown) => boolean = () => true) =>
    values(name).reduce((total, one) => total + (wanted(one.labels.outcome) ? one.value : 0), 0);
  const receiveToSend = new Map<number, number>();
  for (const { metricName, labels, value } of values('pillole_stream_receive_to_send_seconds')) {
    if (metricName?.endsWith('_bucket') !== true) continue;
    const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le);
    receiveToSend.set(bound, (receiveToSend.get(bound) ?? 0) + value);
  }
  return {
    atMs: performance.now(),
    received: sum('pillole_ingest_pills_total'),
    acknowledged: sum('pillole_ingest_pills_total', (outcome) => STORED.has(outcome)),
    lag: Object.fromEntries(asked.flatMap(([name, metrics]) => lagOf(name, metrics))),
    sockets: sum('pillole_stream_connections'),
    deliveries: sum('pillole_stream_deliveries_total'),
    receiveToSend,
    silent: asked.flatMap(([name, metrics]) => (metrics === undefined ? [name] : [])),
  };
}

function lagOf(name: string, metrics: readonly Metric[] | undefined): [string, number][] {
  const lag = metrics?.find((metric) => metric.name === 'pillole_consumer_lag_records');
  if (lag === undefined || lag.values.length === 0) return [];
  return [[name, lag.values.reduce((total, { value }) => total + value, 0)]];
}

async function readMetrics(url: string): Promise<readonly Metric[] | undefined> {
  try {
    const answer = await fetch(`${url}.json`, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    return answer.ok ? ((await answer.json()) as Metric[]) : undefined;
  } catch {
    return undefined;
  }
}
