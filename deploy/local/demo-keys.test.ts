import { expect, test } from 'vitest';
import { readLauncherConfig } from './config.ts';
import { shouldMakeDemoAccounts } from './demo-keys.ts';

test.each([
  [undefined, 'embedded', true],
  [undefined, 'container', true],
  [undefined, 'external', false],
  ['yes', 'external', true],
  ['no', 'embedded', false],
] as const)('DEMO_ACCOUNTS=%s, %s PostgreSQL: demo accounts %s', (setting, postgres, wanted) => {
  const env = setting === undefined ? {} : { DEMO_ACCOUNTS: setting };
  expect(shouldMakeDemoAccounts(readLauncherConfig(env).demoAccounts, postgres)).toBe(wanted);
});
