import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runMaven } from '../../../deploy/local/maven.ts';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { readAll } from '../../../lib/kafka/read-all.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { createDecoder, type SchemaValues } from '../../../schemas/avro.ts';
import { partitionOf } from '../../../schemas/partition.ts';
import { formatCursor, parseCursor } from '../../../schemas/position.ts';
import { topicName } from '../../../schemas/topic-catalogue.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { readLatest, readRejected } from '../../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { makePython } from '../../../testing/python.ts';
import { waitFor } from '../../../testing/wait.ts';

const run = promisify(execFile);
const FOLDER = path.join(packageRoot, 'generator/examples/avro');
const LINES_MAX = 60;
const PARTITIONS = 3;
const READ_MS = 60_000;

let namespace: Namespace;
let latest: TestProcess;
let folder: string;
let stack: string;
let topic: string;

beforeAll(async () => {
  namespace = await createNamespace({ partitions: PARTITIONS });
  topic = topicName(namespace.name, 'pills');
  latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-producers-'));
  stack = path.join(folder, 'stack.json');
  const { kafkaBrokers: kafka, registryUrl: registry } = namespace.engines;
  await writeFile(stack, JSON.stringify({ kafka, registry }));
  await latest.ready();
});

afterAll(async () => {
  await latest?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** A command, from which arguments are left out, and how to prepare it. */
interface Example {
  readonly source: string;
  /** @returns the command, or why it cannot run here */
  readonly prepare: () => Promise<readonly string[] | string>;
}

async function preparePython(): Promise<readonly string[] | string> {
  const made = await makePython(path.join(FOLDER, 'requirements.txt'));
  return 'reason' in made ? made.reason : [made.python, path.join(FOLDER, 'direct_producer.py')];
}

async function prepareGo(): Promise<readonly string[] | string> {
  if (spawnSync('go', ['version']).status !== 0) return 'go is not installed';
  const program = path.join(folder, 'direct-producer-go');
  await run('go', ['build', '-o', program, '.'], { cwd: FOLDER, timeout: 280_000 });
  return [program];
}

async function prepareJava(): Promise<readonly string[] | string> {
  const jars = path.join(folder, 'lib');
  const pom = path.join(FOLDER, 'pom.xml');
  await runMaven(['-q', 'dependency:copy-dependencies', '-f', pom, `-DoutputDirectory=${jars}`]);
  return ['java', '-cp', `${jars}/*`, path.join(FOLDER, 'DirectProducer.java')];
}

const TYPESCRIPT = path.join(packageRoot, 'dist/generator/examples/avro/direct-producer.js');
const EXAMPLES: Readonly<Record<string, Example>> = {
  'USD/JPY': {
    source: 'direct-producer.ts',
    prepare: async () => [process.execPath, TYPESCRIPT],
  },
  '7203.T': { source: 'direct_producer.py', prepare: preparePython },
  '0700.HK': { source: 'direct-producer.go', prepare: prepareGo },
  'M&M.NS': { source: 'DirectProducer.java', prepare: prepareJava },
};

/** Runs a command. @returns the cursor that it prints */
async function produce([command, ...first]: readonly string[], args: readonly string[]) {
  const env = { ...process.env, PILLS_TOPIC: topic };
  const { stdout } = await run(command!, [...first, ...args], { env, timeout: 120_000 });
  return stdout.trim();
}

/** The pills of a symbol in the log, decoded as in the consumers, with their cursors. */
async function pillsOf(symbol: string) {
  const records = await readAll(namespace.client, topic, READ_MS);
  const own = records.filter(({ key }) => key?.toString() === symbol);
  return Promise.all(
    own.map(async ({ partition, offset, value }) => {
      return { cursor: formatCursor(partition, offset), partition, pill: await decode(value) };
    }),
  );
}

async function decode(value: Buffer | null): Promise<SchemaValues['pill']> {
  const decoded = createDecoder('pill', namespace.schemas.writerSchemas).decode(value);
  if ('pendingSchema' in decoded) {
    await namespace.schemas.load(decoded.pendingSchema);
    return decode(value);
  }
  if (!decoded.ok) throw new Error(JSON.stringify(decoded));
  return decoded.value;
}

describe.each(Object.entries(EXAMPLES))('%s by its example', (symbol, { source, prepare }) => {
  let command: readonly string[] | string = 'not prepared';
  beforeAll(async () => {
    command = await prepare();
    if (typeof command === 'string' && process.env.CI !== undefined) throw new Error(command);
  });

  test('writes a valid pill to the right partition, which a reader receives once', async ({
    skip,
  }) => {
    if (typeof command === 'string') return skip(`${source}: ${command}`);
    const time = String(nowMicros());
    const cursors = [
      await produce(command, [symbol, '0.25', stack, time]),
      // As a producer does that got no answer.
      await produce(command, [symbol, '0.25', stack, time]),
    ];
    const written = await pillsOf(symbol);
    expect(written.map(({ cursor }) => cursor)).toEqual(cursors);
    expect(written[0]).toMatchObject({
      partition: partitionOf(symbol, PARTITIONS),
      pill: {
        id: `direct-${time}`,
        symbol,
        gross_spread_percent: 0.25,
        received_at: null,
        source,
        kind: null,
      },
    });
    // A later pill: by then the processor has judged both records of the id.
    const later = await produce(command, [symbol, '0.5', stack]);
    const read = await waitFor('the later pill', async () => {
      const own = (await readLatest(namespace)).filter((one) => one.symbol === symbol);
      return own.at(-1)?.gross_spread_percent === 0.5 && own;
    });
    // The offsets with effect: that of the repeat is not one of them.
    const effective = new Set(read.map(({ offset }) => offset));
    const wanted = [cursors[0]!, later].map((cursor) => parseCursor(cursor)!.offset);
    expect([...effective]).toEqual(wanted);
    expect((await readRejected(namespace)).filter(({ key }) => key?.toString() === symbol)).toEqual(
      [],
    );
    return undefined;
  });

  test('says what to do without arguments, and without a stack', async ({ skip }) => {
    if (typeof command === 'string') return skip(`${source}: ${command}`);
    for (const [args, message] of [
      [[], 'Usage: '],
      [[symbol, '0.25', '/nonexistent/stack.json'], 'Run "npm start"'],
    ] as const) {
      const failed = await produce(command, args).catch((error) => error);
      expect(failed.code).toBe(1);
      expect(failed.stderr).toContain(message);
    }
    return undefined;
  });

  test(`fits ${LINES_MAX} lines`, async () => {
    const text = await readFile(path.join(FOLDER, source), 'utf8');
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(LINES_MAX);
  });
});

test('no example registers a version of the schema', async () => {
  const url = `${namespace.engines.registryUrl}/subjects/${topic}-value/versions`;
  expect(await (await fetch(url)).json()).toEqual([1]);
});

test("with librdkafka's own partitioner a pill ends rejected as wrong_partition", async ({
  skip,
}) => {
  const command = await preparePython();
  if (typeof command === 'string') return skip(command);
  // librdkafka's consistent_random is CRC32(key) mod count: 2 for this key, while murmur2 gives 1.
  const symbol = 'LOST.T';
  const text = await readFile(path.join(FOLDER, 'direct_producer.py'), 'utf8');
  const careless = path.join(folder, 'careless.py');
  await writeFile(careless, text.replace('murmur2_random', 'consistent_random'));
  const cursor = await produce([command[0]!, careless], [symbol, '0.25', stack]);
  expect(cursor).not.toMatch(new RegExp(`^${partitionOf(symbol, PARTITIONS)}-`));
  const rejected = await waitFor('the rejected record', async () => {
    const own = (await readRejected(namespace)).filter(({ key }) => key?.toString() === symbol);
    return own.length > 0 && own;
  });
  expect(rejected).toMatchObject([{ code: 'wrong_partition' }]);
  expect(formatCursor(rejected[0]!.partition, rejected[0]!.offset)).toBe(cursor);
  return undefined;
});
