/** What one process has counted since it began. */
export interface Counts {
  /** Pills that reached ingest, and those of them that the log has. */
  readonly received: number;
  readonly acknowledged: number;
  /** Pills handed to sockets. */
  readonly deliveries: number;
  /** From receive to the first send: by upper bound in seconds, how many took no longer. */
  readonly receiveToSend: ReadonlyMap<number, number>;
}

/** What the platform tells of itself at a moment. */
export interface Sample {
  /** Monotonic ms. */
  readonly atMs: number;
  /** By process; a silent one is not in it, since nobody knows what it has counted. */
  readonly counts: ReadonlyMap<string, Counts>;
  /** Records that a process has still to read, by process. */
  readonly lag: Readonly<Record<string, number>>;
  readonly sockets: number;
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
const LAG = 'pillole_consumer_lag_records';
/** Outcomes of ingest that stand for a pill in the log. */
const STORED: ReadonlySet<unknown> = new Set(['ok', 'replayed']);

/**
 * Asks processes for their metrics. Never rejects: one that does not answer is named. @param places address of /metrics by the name of the process
 */
export async function takeSample(places: ReadonlyMap<string, string>): Promise<Sample> {
  const asked = await Promise.all(
    [...places].map(async ([name, url]) => [name, await readMetrics(url)] as const),
  );
  const answered = asked.flatMap(([name, metrics]) =>
    metrics === undefined ? [] : [[name, metrics] as const],
  );
  return {
    atMs: performance.now(),
    counts: new Map(answered.map(([name, metrics]) => [name, countsOf(metrics)])),
    lag: Object.fromEntries(answered.flatMap(([name, metrics]) => lagOf(name, metrics))),
    sockets: answered.reduce(
      (total, [, metrics]) => total + sum(metrics, 'pillole_stream_connections'),
      0,
    ),
    silent: asked.flatMap(([name, metrics]) => (metrics === undefined ? [name] : [])),
  };
}

function countsOf(metrics: readonly Metric[]): Counts {
  const receiveToSend = new Map<number, number>();
  const latencies = valuesOf(metrics, 'pillole_stream_receive_to_send_seconds');
  for (const { metricName, labels, value } of latencies) {
    if (metricName?.endsWith('_bucket') !== true) continue;
    const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le);
    receiveToSend.set(bound, (receiveToSend.get(bound) ?? 0) + value);
  }
  return {
    received: sum(metrics, 'pillole_ingest_pills_total'),
    acknowledged: sum(metrics, 'pillole_ingest_pills_total', (outcome) => STORED.has(outcome)),
    deliveries: sum(metrics, 'pillole_stream_deliveries_total'),
    receiveToSend,
  };
}

function valuesOf(metrics: readonly Metric[], name: string): readonly Metric['values'][number][] {
  return metrics.find((metric) => metric.name === name)?.values ?? [];
}

function sum(
  metrics: readonly Metric[],
  name: string,
  wanted: (outcome: unknown) => boolean = () => true,
): number {
  return valuesOf(metrics, name).reduce(
    (total, { labels, value }) => total + (wanted(labels.outcome) ? value : 0),
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
