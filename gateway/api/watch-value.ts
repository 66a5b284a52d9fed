import type { Lifecycle } from '../../lib/run/run-process.ts';

/**
 * Reads a value at once, then periodically, one read at a time, until the process stops.
 * @param ifFailed the value after a failed read; by default the last one
 * @returns a function that returns the last value
 */
export function watchValue<T>(
  life: Lifecycle,
  name: string,
  everyMs: number,
  initial: T,
  read: () => Promise<T>,
  ifFailed: (last: T) => T = (last) => last,
): () => T {
  let value = initial;
  let isReading = false;
  const refresh = async () => {
    if (isReading) return;
    isReading = true;
    try {
      value = await read();
    } catch (error) {
      life.log.debug({ err: error }, `the ${name} could not be read`);
      value = ifFailed(value);
    }
    isReading = false;
  };
  const timer = setInterval(() => void refresh(), everyMs);
  life.onStop(name, () => clearInterval(timer));
  void refresh();
  return () => value;
}
