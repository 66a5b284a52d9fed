import { expect, test } from 'vitest';
import { NO_RULES } from '../../../lib/calendar/venue-rules.ts';
import { silentLog } from '../../../lib/log.ts';
import type { Life } from '../../../lib/run.ts';
import { openVerify, type VerifyOptions } from './open-verify.ts';

test('overrides that cannot be read: nothing is open yet, so that trying again leaks nothing', async () => {
  const touched: string[] = [];
  const stops: string[] = [];
  const engine = (name: string) =>
    new Proxy(
      {},
      {
        get(_, member) {
          touched.push(`${name}.${String(member)}`);
          return undefined;
        },
      },
    );
  const options = {
    ...{ client: engine('client'), schemas: engine('schemas'), namespace: 'none' },
    ...{ settings: { epoch: 'e1', partitions: 3 }, venueRules: NO_RULES },
    overridesPath: '/nowhere/overrides.json',
  } as unknown as VerifyOptions;
  const life: Life = {
    ...{ log: silentLog, signal: new AbortController().signal },
    readyWhen: () => void stops.push('ready'),
    fail: (error) => {
      throw error;
    },
    onStop: (name) => void stops.push(name),
  };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await expect(openVerify(options, life)).rejects.toThrow(/overrides/);
  }
  expect([touched, stops]).toEqual([[], []]);
});
