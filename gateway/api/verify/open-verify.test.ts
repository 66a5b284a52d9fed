import { expect, test } from 'vitest';
import { silentLog } from '../../../lib/log/log.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { openVerify } from './open-verify.ts';

test('an unreadable log: nothing is open yet, so a retry leaks nothing', async () => {
  const steps: string[] = [];
  const unreadable = {
    get: () => {
      throw new Error('the log cannot be read');
    },
  };
  const options = {
    config: { namespace: 'none', clickhouseUrl: 'http://127.0.0.1:1' },
    client: new Proxy({}, unreadable),
    settings: { epoch: 'e1', partitions: 3 },
  } as unknown as Parameters<typeof openVerify>[0];
  const life: Lifecycle = {
    log: silentLog,
    signal: new AbortController().signal,
    readyWhen: () => void steps.push('ready'),
    fail: (error) => {
      throw error;
    },
    onStop: (name) => void steps.push(name),
  };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await expect(openVerify(options, life)).rejects.toThrow('the log cannot be read');
  }
  expect(steps).toEqual([]);
});
