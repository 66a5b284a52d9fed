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
import { type Customer, createCustomer } from '../testing/customer.ts';

const run = promisify(execFile);
const CONFIG = path.join(packageRoot, 'gateway/api/fuzz/schemathesis.toml');
const made = await makePython(path.join(packageRoot, 'gateway/api/fuzz/requirements.txt'));
const reason = 'reason' in made ? ` (skipped, python3 -m venv or pip failed: ${made.reason})` : '';

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
let customer: Customer;
let outbox: string;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  key = (await createTestAccount(db, namespace, { tier: 'institutional' })).key;
  outbox = await mkdtemp(path.join(os.tmpdir(), 'pillole-outbox-'));
  const port = await getPort();
  base = `http://127.0.0.1:${port}`;
  latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    API_PORT: String(port),
    PUBLIC_URL: base,
    MAIL_OUTBOX: outbox,
  });
  await Promise.all([latest.ready(), api.ready()]);
  customer = createCustomer(base, outbox, 'fuzz');
  await customer.signUp();
  await customer.subscribe('pro');
  const writer = await openPillWriter(namespace);
  await writer.write([makePill({ symbol: '7203.T' })]);
  await writer.close();
});

afterAll(async () => {
  await Promise.all([api?.stop(), latest?.stop()]);
  await db?.destroy();
  await rm(outbox, { recursive: true, force: true });
});

describe.skipIf('reason' in made && process.env.CI === undefined)(`schemathesis${reason}`, () => {
  test.each([
    ['a key', () => ({ 'X-API-Key': key }), 60, 30],
    // What would end the session that asks is left out.
    ['a session', () => customer.credentials(), 30, 30, ...leaveOut('DELETE /api/session')],
  ] as const)(
    'with %s: no 5xx, nothing undocumented, no invalid input accepted',
    async (...of) => {
      // One seed holds a change to the same inputs as the change before; FUZZ_SEED asks for others.
      const [, credentials, examples, budgetS, ...more] = of;
      const seed = process.env.FUZZ_SEED ?? '1';
      const headers = Object.entries(credentials()).flatMap(([name, value]) => [
        '--header',
        `${name}: ${value}`,
      ]);
      const { failed, stdout } = await runTool([
        ...['-m', 'schemathesis.cli', '--config-file', CONFIG, 'run', `${base}/docs/json`],
        ...['--url', base],
        ...[...headers, '--checks', CHECKS, '--workers', '1'],
        ...['--phases', 'examples,coverage,fuzzing', '--max-time', String(budgetS)],
        ...['--max-examples', String(examples), '--seed', seed, '--no-color'],
        ...['--generation-database', 'none', '--request-timeout', '10', '--warnings', 'off'],
        ...['--continue-on-failure', ...more],
      ]);
      const lines = stdout.split('\n').map((line) => line.slice(0, 300));
      expect(failed, `seed ${seed}\n${lines.slice(-150).join('\n')}`).toBe(false);
      expect(stdout).toMatch(/\d+ generated/);
    },
    300_000,
  );
});

function leaveOut(...names: readonly string[]): string[] {
  return names.flatMap((name) => ['--exclude-name', name]);
}

/** Runs the tool in a folder of its own, since it keeps notes where it runs. */
async function runTool(args: readonly string[]): Promise<{ failed: boolean; stdout: string }> {
  if ('reason' in made) throw new Error(`schemathesis could not be installed: ${made.reason}`);
  const cwd = await mkdtemp(path.join(os.tmpdir(), 'pillole-schemathesis-'));
  try {
    const { stdout } = await run(made.python, args, {
      ...{ cwd, maxBuffer: 64 * 1024 * 1024, timeout: 240_000 },
    });
    return { failed: false, stdout };
  } catch (error) {
    const { stdout, message } = error as { stdout?: string; message: string };
    return { failed: true, stdout: stdout ?? message };
  } finally {
    await rm(cwd, { recursive: true });
  }
}
