import { Worker } from 'node:worker_threads';

// A timer of Node fires on whole milliseconds: 0.5 to 1.1 ms late on average, as much as a pill's
// whole way takes. A thread that sleeps on a futex wakes within some 0.1 ms, and burns no core.
const SOURCE = `
  const { parentPort, workerData: { startMs, everyMs, ticks } } = require('node:worker_threads');
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const now = () => Number(process.hrtime.bigint()) / 1e6;
  for (let tick = 0; tick < ticks; tick += 1) {
    const wait = startMs + tick * everyMs - now();
    if (wait > 0) Atomics.wait(cell, 0, 0, wait);
    parentPort.postMessage(tick);
  }
`;

/**
 * Calls `onTick` at every planned moment, `count` times. Ticks that fall due while the main thread
 * is busy arrive at once after it.
 */
export function runTicker(
  options: { readonly startMicros: number; readonly everyMicros: number; readonly count: number },
  onTick: () => void,
): Promise<void> {
  const worker = new Worker(SOURCE, {
    eval: true,
    workerData: {
      startMs: options.startMicros / 1000,
      everyMs: options.everyMicros / 1000,
      ticks: options.count,
    },
  });
  worker.on('message', onTick);
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => resolve());
  });
}
