/** What V8's sampling profiler tells (`.cpuprofile`), as far as it is read here. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
    readonly children?: readonly number[];
  }[];
  /** Id of the node that ran at each sample, and µs since the sample before. */
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Main thread's time of a profile, µs: by area, and its largest functions. */
export interface ProfileSummary {
  readonly busyMicros: number;
  readonly areas: Readonly<Partial<Record<Area, number>>>;
  readonly functions: readonly { readonly name: string; readonly micros: number }[];
}

export const AREAS = [
  'HTTP',
  'JSON, validation',
  'intake',
  'Avro',
  'Kafka client',
  'metrics',
  'Node, unassigned',
  'kernel, libuv',
  'garbage',
] as const;
export type Area = (typeof AREAS)[number];

/**
 * The area of a file; the first that fits. What is in none of them (sockets, streams, buffers,
 * natives) belongs to the nearest caller that is in one: the same `write` serves HTTP and Kafka.
 */
const FILES: readonly (readonly [Area, RegExp])[] = [
  ['Kafka client', /\/node_modules\/kafkajs\/|\/lib\/kafka\//],
  ['Avro', /\/node_modules\/avsc\/|\/schemas\/(avro|registry)\./],
  ['JSON, validation', /\/lib\/strict-json\.|\/gateway\/ingest\/batch-rows\.|\/schemas\/(?!part)/],
  ['JSON, validation', /\/secure-json-parse\/|\/fastify\/lib\/content-type-parser\./],
  ['metrics', /\/node_modules\/prom-client\/|\/lib\/metrics\.|\/gateway\/ingest\/metrics\./],
  ['intake', /\/gateway\/ingest\/(intake|identities|symbols|skew)\.|\/schemas\/partition\./],
  ['HTTP', /^node:_http|\/node_modules\/|\/gateway\/(http|ingest)\/|\/benchmarks\/ingest\//],
];
const BY_NAME: Readonly<Record<string, Area>> = {
  '(garbage collector)': 'garbage',
  '(program)': 'kernel, libuv',
};
const FUNCTIONS_MAX = 12;

/** Adds a profile up by area. Idle time is in none. */
export function summariseProfile(profile: CpuProfile): ProfileSummary {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map<number, number>();
  for (const { id, children } of profile.nodes) {
    for (const child of children ?? []) parents.set(child, id);
  }
  const areaOf = (id: number): Area => {
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const { functionName, url } = nodes.get(at)!.callFrame;
      const area = BY_NAME[functionName] ?? FILES.find(([, files]) => files.test(url))?.[0];
      if (area !== undefined) return area;
    }
    return 'Node, unassigned';
  };
  const micros = new Map<number, number>();
  for (const [i, id] of profile.samples.entries()) {
    // The first delta reaches back to the start of the profiler; a negative one is V8's jitter.
    micros.set(id, (micros.get(id) ?? 0) + Math.max(0, profile.timeDeltas[i] ?? 0));
  }
  const areas: Partial<Record<Area, number>> = {};
  const functions = new Map<string, number>();
  let busyMicros = 0;
  for (const [id, own] of micros) {
    const { functionName, url, lineNumber } = nodes.get(id)!.callFrame;
    if (functionName === '(idle)' || functionName === '(root)') continue;
    const area = areaOf(id);
    busyMicros += own;
    areas[area] = (areas[area] ?? 0) + own;
    const place = url === '' ? '' : ` ${shortened(url)}:${lineNumber + 1}`;
    const name = `${functionName || '(anonymous)'}${place}`;
    functions.set(name, (functions.get(name) ?? 0) + own);
  }
  const largest = [...functions].sort(([, one], [, other]) => other - one);
  return {
    busyMicros,
    areas,
    functions: largest.slice(0, FUNCTIONS_MAX).map(([name, own]) => ({ name, micros: own })),
  };
}

/** Below the folder of the clone, or of the package. */
function shortened(url: string): string {
  return url.replace(/^.*\/(node_modules|dist)\//, '').replace(/^file:\/\//, '');
}
