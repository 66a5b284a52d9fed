import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { TIERS } from '../../../domain/access/tiers.ts';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { HISTORY_LIMITS } from '../history/limits.ts';
import {
  ANALYTICS_LIMITS,
  BARS_MAX,
  BARS_SYMBOLS_MAX,
  CORRELATED_MAX,
  CORRELATED_STEPS_MAX,
  RANGES,
} from './limits.ts';

const DAY_S = 86_400;
const grouped = (figure: number) => figure.toLocaleString('en-US');

test('the page for analysts states the limits of the code', () => {
  const page = readFileSync(path.join(packageRoot, 'docs/analysts.md'), 'utf8');
  const pages = Math.ceil(864_000 / HISTORY_LIMITS.pageMax);
  expect(RANGES.confidenceOfAll.maxS).toBe(DAY_S);
  for (const row of [
    `| calls of a day, Pro | ${grouped(TIERS.pro.callsPerDay!)} |`,
    `| ${grouped(HISTORY_LIMITS.pageMax)} pills: a day of 864,000 is ${pages} calls |`,
    `| ${grouped(BARS_MAX)} bars, ${BARS_SYMBOLS_MAX} symbols |`,
    `or one symbol: ${RANGES.confidence.maxS / DAY_S} days |`,
    `| ${CORRELATED_MAX} symbols, ${grouped(CORRELATED_STEPS_MAX)} steps |`,
    `| ${ANALYTICS_LIMITS.activeOfAccountMax} at a time, ${ANALYTICS_LIMITS.waitingOfAccountMax} more wait for ${ANALYTICS_LIMITS.waitingMs / 1_000} s |`,
  ]) {
    expect(page).toContain(row);
  }
});
