import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { startProcess } from '../../testing/process.ts';

let namespace: Namespace;
let temp: string;

beforeAll(async () => {
  namespace = await createNamespace();
  temp = mkdtempSync(path.join(os.tmpdir(), 'pillole start-'));
});

afterAll(() => {
  if (temp !== undefined) rmSync(temp, { recursive: true, force: true });
});

const start = () =>
  startProcess('gateway/dedicated/main.js', [], { ...namespace.env, TMPDIR: temp });
const runFolder = () => path.join(temp, `pillole-dedicated-${os.userInfo().uid}-${namespace.name}`);

test('without a configured folder, a private one in the temp directory is used', async () => {
  const supervisor = await start();
  await supervisor.ready();
  expect(statSync(runFolder()).mode & 0o777).toBe(0o700);
  await supervisor.stop();
});

test('a folder that others can read is refused, with a remedy', async () => {
  mkdirSync(runFolder(), { recursive: true });
  chmodSync(runFolder(), 0o777);
  const refused = await start();
  expect(await refused.exited).toBe(1);
  expect(refused.output()).toContain(
    `${runFolder()} has the mode 0777 and must have 0700. Remove it if it is yours. ` +
      'Or set DEDICATED_RUN_FOLDER to a folder of your own.',
  );
});
