import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { makePill, openPillWriter, type PillWriter } from '../../../testing/pills.ts';
import { isLongRun } from '../../../testing/run-length.ts';
import { testSeed } from '../../../testing/seed.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type Client, closeClients, connect } from '../testing/stream-client.ts';
import { type FuzzResult, runFuzzSession } from './testing/fuzz-session.ts';
import { closeRawClients } from './testing/raw-client.ts';
import { seedOf } from './testing/seeded-random.ts';
import { startTestStream, type TestStream } from './testing/test-stream.ts';

/** Inputs: frames and handshakes. CI runs ten times as many as a local run, a long run a hundred. */
const INPUTS = Number(
  process.env.TEST_INPUTS ?? (isLongRun ? 1_000_000 : process.env.CI ? 100_000 : 10_000),
);
/** Repeats one connection of a run that failed. */
const SESSION =
  process.env.TEST_SESSION === undefined ? undefined : Number(process.env.TEST_SESSION);
const AT_A_TIME = 24;
/**
 * The heap of the process, small enough to force garbage collection: a leak of 5 KiB per connection
 * in a run of 100,000 inputs would end the process.
 */
const HEAP_MIB = 96;
/** Samples of the memory; the lowest of each half excludes most memory that is not yet freed. */
const SAMPLES = 20;
/** Growth of memory outside the heap from one half to the other: 8 KiB per connection. */
const RSS_GROWTH_MAX_MIB = 64;

let stream: TestStream;
let writer: PillWriter;

beforeAll(async () => {
  stream = await startTestStream({
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}`,
    TRUSTED_PROXIES: 'loopback',
  });
  writer = await openPillWriter(stream.namespace);
});

afterEach(() => {
  closeClients();
  closeRawClients();
});

afterAll(async () => {
  await writer?.close();
  await stream?.close();
});

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${stream.process.opsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}
const rssMib = async () => (await metric('process_resident_memory_bytes')) / 2 ** 20;

/** A well-behaved client and a generator, while other clients misbehave. */
async function startWitness() {
  const client: Client = await connect(stream.url, { key: stream.key });
  const { epoch } = await client.until('welcome');
  client.send({ op: 'subscribe', symbols: ['WITNESS.T'] });
  await client.until('live');
  const written: string[] = [];
  let isWriting = true;
  const writing = (async () => {
    while (isWriting) {
      const pills = Array.from({ length: 3 }, () => makePill({ symbol: 'WITNESS.T' }));
      // The log may be busy with other tests; a pill that is sent again is a repeat.
      await waitFor('an acknowledgement', async () => (await writer.write(pills)).length > 0);
      written.push(...pills.map(({ id }) => id));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return {
    epoch,
    async end() {
      isWriting = false;
      await writing;
      await waitFor('every pill', () => client.pills().length >= written.length);
      expect(client.pills().map(({ id }) => id)).toEqual(written);
      client.pills().forEach(({ prev }, at, pills) => {
        if (at > 0) expect(prev).toBe(pills[at - 1]!.cursor);
      });
      return written.length;
    },
  };
}

test(`${INPUTS} mutated frames and handshakes do not affect another client`, async () => {
  console.log(`TEST_SEED=${testSeed}`);
  const witness = await startWitness();
  const target = { port: stream.port, key: stream.key, epoch: witness.epoch };
  const outcomes = new Map<string, number>();
  const faults: string[] = [];
  const rss: number[] = [];
  let inputs = 0;
  let next = SESSION ?? 0;
  const note = (session: number, result: FuzzResult) => {
    inputs += result.inputs.length;
    outcomes.set(result.outcome, (outcomes.get(result.outcome) ?? 0) + 1);
    if (result.fault === undefined) return;
    const sent = result.inputs.map((input) => `\n    ${input.toString('latin1').slice(0, 200)}`);
    faults.push(`TEST_SEED=${testSeed} TEST_SESSION=${session}: ${result.fault}${sent.join('')}`);
  };
  const until = SESSION === undefined ? INPUTS : 1;
  const workers = Array.from({ length: SESSION === undefined ? AT_A_TIME : 1 }, async () => {
    while (inputs < until && faults.length < 10) {
      const session = next;
      next += 1;
      note(session, await runFuzzSession(target, seedOf(testSeed, session)));
      if (inputs >= ((rss.length + 1) * until) / SAMPLES) {
        const at = rss.push(0) - 1;
        rss[at] = await rssMib();
      }
    }
  });
  await Promise.all(workers);
  expect(faults.join('\n')).toBe('');
  const pills = await witness.end();
  console.log(`${inputs} inputs, ${next} connections, ${pills} pills to the witness`);
  console.log(JSON.stringify(Object.fromEntries(outcomes)), rss.map(Math.round).join(' '), 'MiB');

  expect(stream.process.child.exitCode).toBeNull();
  const log = stream.process.output().trim().split('\n');
  expect(log.filter((line) => !/^\{"level":[34]0,/.test(line))).toEqual([]);
  await waitFor('only the witness', async () => (await metric('pillole_stream_connections')) === 1);
  await waitFor('no queue', async () => (await metric('pillole_stream_queue_bytes')) === 0);
  if (SESSION !== undefined) return;
  const [before, after] = [rss.slice(0, SAMPLES / 2), rss.slice(SAMPLES / 2)];
  expect(Math.min(...after) - Math.min(...before)).toBeLessThan(RSS_GROWTH_MAX_MIB);
}, 1_200_000);
