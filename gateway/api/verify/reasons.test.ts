import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { REASONS, type ReasonCode, VERDICTS, verdictOf } from './reasons.ts';
import { AnswerSchema } from './schemas.ts';

test('the table of the README, the schema and the code are equal', async () => {
  const readme = await readFile(new URL('README.md', import.meta.url), 'utf8');
  const rows = readme.split('\n').filter((line) => /^\| `[a-z_]+` \| [a-z]+ \| /.test(line));
  expect(rows).toEqual(
    Object.entries(REASONS).map(
      ([code, { verdict, meaning, remedy }]) =>
        `| \`${code}\` | ${verdict} | ${meaning} | ${remedy} |`,
    ),
  );
  const told = JSON.stringify(AnswerSchema);
  for (const code of Object.keys(REASONS)) expect(told).toContain(`"${code}"`);
});

test('of any set of reasons the worst verdict applies; of none it is verified', () => {
  const codes = Object.keys(REASONS) as ReasonCode[];
  const of = (...some: ReasonCode[]) => verdictOf(some.map((code) => ({ code, detail: '' })));
  expect(of()).toBe('verified');
  for (const a of codes) {
    for (const b of codes) {
      const worst = Math.min(
        ...[a, b].map((code) => VERDICTS.indexOf(REASONS[code].verdict as 'unknown')),
      );
      expect(of(a, b)).toBe(VERDICTS[worst]);
    }
  }
});
