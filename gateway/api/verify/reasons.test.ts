import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { REASON_LIST, type ReasonCode, VERDICTS, verdictOf } from './reasons.ts';
import { AnswerSchema } from './schemas.ts';

test('the table of the README, the schema and the code are equal', async () => {
  const readme = await readFile(new URL('README.md', import.meta.url), 'utf8');
  const rows = readme.split('\n').filter((line) => /^\| `[a-z_]+` \| [a-z]+ \| /.test(line));
  // The fourth column, what to do, is documented only there.
  const cells = rows.map((row) => /^(\| .+ \| .+ \| .+ \| )[A-Z].+\. \|$/.exec(row)?.[1]);
  expect(cells).toEqual(
    REASON_LIST.map(({ code, verdict, meaning }) => `| \`${code}\` | ${verdict} | ${meaning} | `),
  );
  const schema = JSON.stringify(AnswerSchema);
  for (const { code } of REASON_LIST) expect(schema).toContain(`"${code}"`);
});

test('the worst reason decides the verdict; without reasons it is verified', () => {
  const of = (...codes: ReasonCode[]) => verdictOf(codes.map((code) => ({ code })));
  expect(of()).toBe('verified');
  for (const a of REASON_LIST) {
    for (const b of REASON_LIST) {
      const worst = Math.min(...[a, b].map(({ verdict }) => VERDICTS.indexOf(verdict)));
      expect(of(a.code, b.code)).toBe(VERDICTS[worst]);
    }
  }
});
