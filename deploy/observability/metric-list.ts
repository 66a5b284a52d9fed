/** A metric as a process reports it at /metrics.json. */
export interface ReportedMetric {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly values: readonly {
    readonly metricName?: string;
    readonly labels: Readonly<Record<string, string | number>>;
  }[];
}

/** The metrics of all processes by name, and the processes that report each. */
export type MetricList = ReadonlyMap<
  string,
  { readonly metric: ReportedMetric; readonly processes: readonly string[] }
>;

/** Labels that a metric may have, each with a bounded set of values. */
export const LABELS: Readonly<Record<string, string>> = {
  channel: 'a way by which pills reach customers: ingest, latest, stream, webhook',
  dependency: 'an engine: kafka, postgres, clickhouse',
  event: 'a kind of security event, at most 100',
  outcome: 'how something ended, of a fixed set that the help names, or the code of a problem',
  reason: 'why something ended, of a fixed set',
  route: 'the pattern of a route of the API',
  status: 'the class of an HTTP status',
  topic: 'a topic of the catalogue',
  type: 'a type of destinations',
  version: 'the version of the program',
};

/** Series of one metric in one process; the routes of the API are the most. */
export const SERIES_MAX = 1_000;

/** Ends of names: a unit, or the noun that is counted. */
const UNITS = [
  ...['seconds', 'bytes', 'info', 'ready', 'up', 'silent', 'version', 'versions', 'faulty'],
  ...['pills', 'records', 'rows', 'requests', 'calls', 'endpoints', 'messages', 'connections'],
  ...[
    'destinations',
    'symbols',
    'identities',
    'events',
    'attempts',
    'deliveries',
    'mails',
    'frames',
    'lines',
  ],
];
/** What happened to the counted nouns: `pills_sent_total`, `lines_lost_total`. */
const PARTICIPLES = ['sent', 'skipped', 'opened', 'closed', 'lost', 'dropped', 'kept', 'down'];
const NAME = /^pillole_[a-z]+(?:_[a-z]+)*$/;

/** Merges what the processes report. @param reports metrics by process */
export function mergeMetrics(reports: ReadonlyMap<string, readonly ReportedMetric[]>): MetricList {
  const list = new Map<string, { metric: ReportedMetric; processes: string[] }>();
  for (const [process, metrics] of reports) {
    for (const metric of metrics) {
      if (!metric.name.startsWith('pillole_')) continue;
      const known = list.get(metric.name);
      if (known === undefined) list.set(metric.name, { metric, processes: [process] });
      else known.processes.push(process);
    }
  }
  return new Map([...list].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** What breaks the convention of docs/metrics.md; empty = nothing. */
export function conventionFaults({ name, type, labels, values, help }: ReportedMetric): string[] {
  const faults: string[] = [];
  const isTotal = name.endsWith('_total');
  if (!NAME.test(name)) faults.push(`${name} is not pillole_ with words of letters.`);
  if (isTotal !== (type === 'counter')) faults.push(`${name}: counters alone end in _total.`);
  const end = name
    .replace(/_total$/, '')
    .split('_')
    .at(-1)!;
  // `requests_in_flight` ends in no noun.
  const isKnown = UNITS.includes(end) || (isTotal && PARTICIPLES.includes(end)) || end === 'flight';
  if (!isKnown) faults.push(`${name} ends in no unit or noun that is listed.`);
  if (type === 'histogram' && !/_(seconds|bytes)$/.test(name)) faults.push(`${name} has no unit.`);
  if (!/^[A-Z\d].*\.$/.test(help)) faults.push(`${name}: help: ${help}`);
  for (const label of labels) {
    if (LABELS[label] === undefined) faults.push(`${name}: label ${label} is not in the list.`);
  }
  const series = values.filter(({ metricName }) => metricName?.endsWith('_bucket') !== true);
  if (series.length > SERIES_MAX) faults.push(`${name} has ${series.length} series.`);
  return faults;
}

/** The table of docs/metrics.md. */
export function metricTable(list: MetricList): string {
  const rows = [...list].map(([name, { metric, processes }]) => {
    const labels = [...metric.labels].sort().join(', ');
    return `| \`${name}\` | ${metric.type} | ${labels} | ${processes.join(', ')} | ${metric.help} |`;
  });
  return [
    '| metric | type | labels | processes | meaning |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}
