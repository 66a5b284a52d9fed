import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../../lib/files/package-root.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { makePill, openPillWriter } from '../../../testing/pills.ts';
import { getPort } from '../../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { makePython } from '../../../testing/python.ts';
import { testSeed } from '../../../testing/seed.ts';
import { type Customer, createCustomer, enroll } from '../testing/customer.ts';

const run = promisify(execFile);
const CONFIG = path.join(packageRoot, 'gateway/api/fuzz/schemathesis.toml');
const made = await makePython(path.join(packageRoot, 'gateway/api/fuzz/requirements.txt'));
const reason = 'reason' in made ? ` (skipped, python3 -m venv or pip failed: ${made.reason})` : '';

/**
 * No 5xx, no undocumented status or media type, answers match their schemas, no invalid input is
 * accepted, and no protected route answers without a credential.
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
  // Without it, the routes of generators are open on this machine.
  const credentials = path.join(outbox, 'generators.json');
  await writeFile(credentials, JSON.stringify({ name: 'desk', sha256: '0'.repeat(64) }));
  api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    API_PORT: String(port),
    PUBLIC_URL: base,
    MAIL_OUTBOX: outbox,
    INGEST_CREDENTIALS_FILE: credentials,
  });
  await Promise.all([latest.ready(), api.ready()]);
  customer = createCustomer(base, outbox, 'fuzz');
  await enroll(db, customer);
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
    // Operations that would end the session are left out.
    ['a session', () => customer.credentials(), 30, 30, ...leaveOut('DELETE /api/session')],
  ] as const)(
    'with %s: no 5xx, nothing undocumented, no invalid input accepted',
    async (...of) => {
      const [, credentials, examples, budgetS, ...more] = of;
      const headers = Object.entries(credentials()).flatMap(([name, value]) => [
        '--header',
        `${name}: ${value}`,
      ]);
      const { failed, stdout } = await runTool([
        ...['-m', 'schemathesis.cli', '--config-file', CONFIG, 'run', `${base}/docs/json`],
        ...['--url', base],
        ...[...headers, '--checks', CHECKS, '--workers', '1'],
        ...['--phases', 'examples,coverage,fuzzing', '--max-time', String(budgetS)],
        ...['--max-examples', String(examples), '--seed', String(testSeed), '--no-color'],
        ...['--generation-database', 'none', '--request-timeout', '60', '--warnings', 'off'],
        // The operations of ingest have a server of their own.
        ...['--continue-on-failure', '--exclude-tag', 'ingest', ...more],
      ]);
      const lines = stdout.split('\n').map((line) => line.slice(0, 300));
      expect(failed, `TEST_SEED=${testSeed}\n${lines.slice(-150).join('\n')}`).toBe(false);
      expect(stdout).toMatch(/\d+ generated/);
    },
    300_000,
  );
});

function leaveOut(...names: readonly string[]): string[] {
  return names.flatMap((name) => ['--exclude-name', name]);
}

/** Runs the tool in a temporary folder, because it stores state in its working folder. */
async function runTool(args: readonly string[]): Promise<{ failed: boolean; stdout: string }> {
  if ('reason' in made) throw new Error(`schemathesis could not be installed: ${made.reason}`);
  const cwd = await mkdtemp(path.join(os.tmpdir(), 'pillole-schemathesis-'));
  try {
    const { stdout } = await run(made.python, args, {
      cwd,
      maxBuffer: 64 * 1024 * 1024,
      timeout: 240_000,
    });
    return { failed: false, stdout };
  } catch (error) {
    const { stdout, message } = error as { stdout?: string; message: string };
    return { failed: true, stdout: stdout ?? message };
  } finally {
    await rm(cwd, { recursive: true });
  }
}
