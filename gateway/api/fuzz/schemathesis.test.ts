import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import getPort from 'get-port';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../lib/postgres/database.ts';
import { packageRoot } from '../../../lib/root.ts';
import { createTestAccount, openTestDatabase } from '../../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../lib/testing/namespace.ts';
import { makePill, openPillWriter } from '../../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { makePython } from '../../../lib/testing/python.ts';

const run = promisify(execFile);
const made = await makePython(path.join(packageRoot, 'gateway/api/fuzz/requirements.txt'));
const reason = 'reason' in made ? ` (skipped, python3 -m venv or pip failed: ${made.reason})` : '';

/** The budget of one run, in the tool's own count of seconds. */
const BUDGET_S = 45;
const EXAMPLES_MAX = 60;
/**
 * No 5xx, no undocumented status or type, answers as their schemas say, no invalid input accepted,
 * no protected route that answers without its credential.
 */
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
  'negative_data_rejection',
  'ignored_auth',
].join(',');

let namespace: Namespace;
let db: Database;
let api: TestProcess;
let latest: TestProcess;
let base: string;
let key: string;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  key = (await createTestAccount(db, namespace, { tier: 'institutional' })).key;
  const port = await getPort();
  base = `http://127.0.0.1:${port}`;
  latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    API_PORT: String(port),
    PUBLIC_URL: base,
  });
  await Promise.all([latest.ready(), api.ready()]);
  const writer = await openPillWriter(namespace);
  await writer.write([makePill({ symbol: '7203.T' })]);
  await writer.close();
});

afterAll(async () => {
  await Promise.all([api?.stop(), latest?.stop()]);
  await db?.destroy();
});

describe.skipIf('reason' in made)(`schemathesis${reason}`, () => {
  test('finds no 5xx, no undocumented answer and no invalid input accepted', async () => {
    const seed = String(Math.floor(Math.random() * 2 ** 31));
    const args = [
      ...['-m', 'schemathesis.cli', 'run', `${base}/docs/json`, '--url', base],
      ...['--header', `X-API-Key: ${key}`, '--checks', CHECKS, '--workers', '1'],
      ...['--phases', 'examples,coverage,fuzzing', '--max-time', String(BUDGET_S)],
      ...['--max-examples', String(EXAMPLES_MAX), '--seed', seed, '--no-color'],
      ...['--generation-database', 'none', '--request-timeout', '10', '--warnings', 'off'],
      '--continue-on-failure',
    ];
    const { python } = made as { python: string };
    // It keeps notes where it runs.
    const cwd = await mkdtemp(path.join(os.tmpdir(), 'pillole-schemathesis-'));
    const options = { cwd, maxBuffer: 64 * 1024 * 1024, timeout: 240_000 };
    const outcome = await run(python, args, options).then(
      ({ stdout }) => ({ failed: false, stdout }),
      (error: { stdout?: string; message: string }) => ({
        failed: true,
        stdout: error.stdout ?? error.message,
      }),
    );
    await rm(cwd, { recursive: true });
    expect(outcome.failed, `seed ${seed}\n${outcome.stdout.slice(-20_000)}`).toBe(false);
    expect(outcome.stdout).toMatch(/\d+ generated/);
  }, 300_000);
});
