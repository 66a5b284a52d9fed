/** Counters of one process since its start. */
export type Counts = ReturnType<typeof countsOf>;
/** Metrics of the platform at one moment. */
export type Sample = Awaited<ReturnType<typeof takeSample>>;

interface Metric {
  readonly name: string;
  readonly values: readonly {
    readonly value: number;
    readonly metricName?: string;
    readonly labels: Readonly<Record<string, string | number>>;
  }[];
}

const ANSWER_TIMEOUT_MS = 1_000;
const LAG = 'pillole_consumer_lag_records';
/** Outcomes of ingest that mean that the pill is in the log. */
const STORED: ReadonlySet<unknown> = new Set(['ok', 'replayed']);

/**
 * Reads the metrics of all processes. Never rejects: the sample names processes that do not answer.
 * @param metricsUrls address of /metrics by process name
 */
export async function takeSample(metricsUrls: ReadonlyMap<string, string>) {
  const answers = await Promise.all(
    [...metricsUrls].map(async ([name, url]) => [name, await readMetrics(url)] as const),
  );
  const answered = answers.flatMap(([name, metrics]) =>
    metrics === undefined ? [] : [[name, metrics] as const],
  );
  return {
    atMs: performance.now(),
    counts: new Map(answered.map(([name, metrics]) => [name, countsOf(metrics)])),
    /** Records not yet read, by process. */
    lag: Object.fromEntries(answered.flatMap(([name, metrics]) => lagOf(name, metrics))),
    sockets: answered.reduce(
      (total, [, metrics]) => total + sum(metrics, 'pillole_stream_connections'),
      0,
    ),
    unreachable: answers.flatMap(([name, metrics]) => (metrics === undefined ? [name] : [])),
  };
}

function countsOf(metrics: readonly Metric[]) {
  const receiveToSend = new Map<number, number>();
  const latencies = valuesOf(metrics, 'pillole_stream_receive_to_send_seconds');
  for (const { metricName, labels, value } of latencies) {
    if (metricName?.endsWith('_bucket') !== true) continue;
    const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le);
    receiveToSend.set(bound, (receiveToSend.get(bound) ?? 0) + value);
  }
  return {
    /** Pills received by ingest, and the number of them that are in the log. */
    received: sum(metrics, 'pillole_ingest_pills_total'),
    acknowledged: sum(metrics, 'pillole_ingest_pills_total', (outcome) => STORED.has(outcome)),
    /** Pills sent to sockets. */
    deliveries: sum(metrics, 'pillole_stream_deliveries_total'),
    /** From receive to the first send: cumulative counts by upper bound in seconds. */
    receiveToSend,
  };
}

function valuesOf(metrics: readonly Metric[], name: string): readonly Metric['values'][number][] {
  return metrics.find((metric) => metric.name === name)?.values ?? [];
}

function sum(
  metrics: readonly Metric[],
  name: string,
  counts: (outcome: unknown) => boolean = () => true,
): number {
  return valuesOf(metrics, name).reduce(
    (total, { labels, value }) => total + (counts(labels.outcome) ? value : 0),
    0,
  );
}

function lagOf(name: string, metrics: readonly Metric[]): [string, number][] {
  if (valuesOf(metrics, LAG).length === 0) return [];
  return [[name, sum(metrics, LAG)]];
}

async function readMetrics(url: string): Promise<readonly Metric[] | undefined> {
  try {
    const answer = await fetch(`${url}.json`, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    return answer.ok ? ((await answer.json()) as Metric[]) : undefined;
  } catch {
    return undefined;
  }
}
