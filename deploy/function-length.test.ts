import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { packageRoot } from '../lib/files/package-root.ts';

/** A function fits a screen. */
const LINES_FIT = 70;
/** No function is longer, in the list below or not. */
const LINES_MAX = 100;
/** Functions over 70 lines, by file. The list may only shrink. */
const KNOWN_LONG: readonly string[] = JSON.parse(
  readFileSync(path.join(packageRoot, 'deploy/long-functions.json'), 'utf8'),
);

interface LongFunction {
  readonly name: string;
  readonly lines: number;
}

function longFunctionsOf(file: string): LongFunction[] {
  const text = readFileSync(path.join(packageRoot, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  const found: LongFunction[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node)) {
      const lines = lineOf(node.end) - lineOf(node.getStart()) + 1;
      const name =
        node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : undefined);
      if (lines > LINES_FIT) found.push({ name: `${file} ${name?.getText() ?? '()'}`, lines });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

test('functions fit a screen: none over 100 lines, and no further one over 70', () => {
  const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx'], { cwd: packageRoot })
    .toString()
    .split('\n')
    .filter((file) => file !== '' && !/\.test\.tsx?$|(^|\/)testing\//.test(file));
  const long = files.flatMap(longFunctionsOf);
  expect(long.filter(({ lines }) => lines > LINES_MAX)).toEqual([]);
  // A name that is no longer over 70 lines leaves the list.
  expect(long.map(({ name }) => name).sort()).toEqual([...KNOWN_LONG].sort());
});
