import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../lib/files/package-root.ts';
import { readAll } from '../../lib/kafka/read-all.ts';
import { createDecoder, type RejectedRecord } from '../../schemas/avro.ts';
import { partitionOf } from '../../schemas/partition.ts';
import { formatCursor, parseCursor } from '../../schemas/position.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { startProcess } from '../../testing/process.ts';
import { makePython } from '../../testing/python.ts';
import { waitFor } from '../../testing/wait.ts';

const run = promisify(execFile);
const examples = path.join(packageRoot, 'generator', 'examples');
const PARTITIONS = 3;
const READ_MS = 60_000;

let namespace: Namespace;
beforeAll(async () => {
  namespace = await createNamespace({ partitions: PARTITIONS });
});

function commonArgs(): string[] {
  const { kafkaBrokers, registryUrl } = namespace.engines;
  const topic = topicName(namespace.name, 'pills');
  return ['--brokers', kafkaBrokers, '--registry', registryUrl, '--topic', topic];
}

/** The record at a printed cursor, decoded as in the consumers. */
async function recordAt(printed: string) {
  const cursor = parseCursor(printed.trim())!;
  const records = await readAll(namespace.client, topicName(namespace.name, 'pills'), READ_MS);
  const record = records.find(
    ({ partition, offset }) => partition === cursor.partition && offset === cursor.offset,
  )!;
  const decoder = createDecoder('pill', namespace.schemas.writerSchemas);
  let decoded = decoder.decode(record.value);
  if ('pendingSchema' in decoded) {
    await namespace.schemas.load(decoded.pendingSchema);
    decoded = decoder.decode(record.value);
  }
  return { ...cursor, key: record.key?.toString(), decoded };
}

function expected(symbol: string, id: string, source: string) {
  return {
    key: symbol,
    partition: partitionOf(symbol, PARTITIONS),
    decoded: {
      ok: true,
      value: {
        id,
        symbol,
        gross_spread_percent: 0.25,
        market_state: 'closed',
        confidence: 0.5,
        received_at: null,
        source,
        kind: null,
      },
    },
  };
}

const FIGURES = ['--spread', '0.25', '--state', 'closed', '--confidence', '0.5'];

it('the TypeScript example writes a pill that the consumers read', async () => {
  const entry = path.join(packageRoot, 'dist', 'generator', 'examples', 'direct-producer.js');
  const args = [...commonArgs(), '--symbol', 'USD/JPY', '--id', 'from-ts', ...FIGURES];
  const { stdout } = await run(process.execPath, [entry, ...args]);
  const record = await recordAt(stdout);
  expect(record).toMatchObject(expected('USD/JPY', 'from-ts', 'direct-producer.ts'));
});

const made = await makePython(path.join(examples, 'requirements.txt'));
const reason = 'reason' in made ? ` (skipped, python3 -m venv or pip failed: ${made.reason})` : '';

describe.skipIf('reason' in made)(`the Python example${reason}`, () => {
  const produce = async (...args: string[]) => {
    const { python } = made as { python: string };
    const script = path.join(examples, 'direct_producer.py');
    const { stdout } = await run(python, [script, ...commonArgs(), ...args]);
    return stdout.trim();
  };

  it('writes a pill that the consumers read, in the right partition', async () => {
    const record = await recordAt(
      await produce('--symbol', '7203.T', '--id', 'from-py', ...FIGURES),
    );
    expect(record).toMatchObject(expected('7203.T', 'from-py', 'direct_producer.py'));
  });

  it('registers no new version of the schema', async () => {
    const subject = `${topicName(namespace.name, 'pills')}-value`;
    const url = `${namespace.engines.registryUrl}/subjects/${subject}/versions`;
    expect(await (await fetch(url)).json()).toEqual([1]);
  });

  it("with librdkafka's own partitioner a pill ends rejected as wrong_partition", async () => {
    // librdkafka's consistent_random is CRC32(key) mod count: 0 for this key, while murmur2 gives 1.
    expect([crc32('7203.T') % PARTITIONS, partitionOf('7203.T', PARTITIONS)]).toEqual([0, 1]);
    const cursor = await produce('--symbol', '7203.T', '--id', 'astray', '--default-partitioner');
    expect(cursor).toMatch(/^0-/);
    const latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
    try {
      await latest.ready();
      const rejected = await waitFor('the rejected record', async () => {
        const all = await rejectedRecords();
        return all.length > 0 ? all : 'none';
      });
      expect(rejected).toHaveLength(1);
      const { partition, offset, code, key } = rejected[0]!;
      expect(formatCursor(partition, offset)).toBe(cursor);
      expect({ code, key: key?.toString() }).toEqual({ code: 'wrong_partition', key: '7203.T' });
    } finally {
      await latest.stop();
    }
  });
});

async function rejectedRecords(): Promise<RejectedRecord[]> {
  await namespace.schemas.register('rejected');
  const decoder = createDecoder('rejected-record', namespace.schemas.writerSchemas);
  const records = await readAll(namespace.client, topicName(namespace.name, 'rejected'), READ_MS);
  return records.map(({ value }) => {
    const decoded = decoder.decode(value);
    if (!('ok' in decoded) || !decoded.ok) throw new Error(JSON.stringify(decoded));
    return decoded.value;
  });
}

/** CRC-32 (IEEE 802.3), as librdkafka hashes a key. */
function crc32(text: string): number {
  let crc = ~0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
