import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStream } from '../../gateway/stream/testing/start-stream.ts';
import { createNamespace } from '../../testing/namespace.ts';
import type { TestProcess } from '../../testing/process.ts';

const SAMPLE_S = 5;

let stream: TestProcess;

beforeAll(async () => {
  const { env } = await createNamespace();
  ({ stream } = await startStream(env));
});

afterAll(async () => {
  await stream?.stop();
});

/** How often the main thread of a process has waited for something, since its start (Linux). */
function wakeUps({ pid }: TestProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^voluntary_ctxt_switches:\s*(\d+)$/m.exec(status)![1]);
}

// Other work on the machine can only lower the figure. Without the mend of the library's timers the
// process wakes some 850 times a second.
test('an idle process that reads the log wakes fewer than 200 times a second', async () => {
  const before = wakeUps(stream);
  await sleep(SAMPLE_S * 1_000);
  const count = wakeUps(stream) - before;
  expect(count).toBeGreaterThan(0);
  expect(count / SAMPLE_S).toBeLessThan(200);
});
