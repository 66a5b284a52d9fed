import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readAudit } from '../../lib/accounts/audit.ts';
import { listCurrentNotices, NOTICE_LIMITS, publishNotice } from '../../lib/accounts/notices.ts';
import { readAccount } from '../../lib/accounts/operator.ts';
import { nowMicros } from '../../lib/clock.ts';
import { checkCredential, parseCredentials } from '../../lib/generator-credentials.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { packageRoot } from '../../lib/root.ts';
import { createTestAccount, openTestDatabase } from '../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../lib/testing/namespace.ts';

const OPERATOR = `operator:${os.userInfo().username}`;

let namespace: Namespace;
let db: Database;
let folder: string;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-admin-'));
});

afterAll(async () => {
  await db?.destroy();
  await rm(folder, { recursive: true, force: true });
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function admin(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const entry = path.join(packageRoot, 'dist', 'deploy', 'admin', 'main.js');
  const all = { PATH: process.env.PATH, ...namespace.env, ...env };
  return new Promise((resolve) => {
    execFile(process.execPath, [entry, ...args], { env: all }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** Runs a command that must be done, and gives its result. */
async function done<T = Record<string, unknown>>(...args: readonly string[]): Promise<T> {
  const ended = await admin(['--json', ...args]);
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(ended.stdout) as T;
}

test('an account is suspended, limited, its keys revoked, and all of it is audited', async () => {
  const { id, key } = await createTestAccount(db, namespace, { tier: 'basic' });
  await db
    .insertInto('users')
    .values({ id: 'usr_admin', account_id: id, email: 'ops@example.com', password_hash: 'secret' })
    .execute();

  await done('account', 'suspend', 'OPS@example.com', '--reason', 'unpaid invoice');
  expect(await done('account', 'show', id)).toMatchObject({
    status: 'suspended',
    suspendedReason: 'unpaid invoice',
    liveKeys: 1,
    subscription: { tier: 'basic' },
  });
  const twice = await admin(['account', 'suspend', id, '--reason', 'again']);
  expect(twice).toMatchObject({ code: 1, stderr: expect.stringContaining('is not active') });
  await done('account', 'unsuspend', id);
  await done('account', 'limits', id, '--rate', '500', '--burst', '900');
  await done('account', 'limits', id, '--calls-per-day', '5000');
  const raised = { rate: 500, burst: 900, callsPerDay: 5_000 };
  expect(await readAccount(db, id)).toMatchObject({ status: 'active', limits: raised });
  await done('account', 'limits', id, '--reset');
  expect((await readAccount(db, id))?.limits).toEqual({
    rate: null,
    burst: null,
    callsPerDay: null,
  });
  expect(await done('account', 'revoke-keys', id)).toEqual({ account: id, revoked: 1 });
  expect(await done('billing', 'fail-payment', id)).toMatchObject({ event: 'payment.failed' });
  await done('billing', 'pay', id);
  await done('billing', 'end', id);
  expect(await done<object[]>('account', 'list')).toMatchObject([
    { id, status: 'active', subscription: 'ended' },
  ]);

  const audit = await readAudit(db, id, { limit: 50 });
  expect(audit.map(({ action }) => action).reverse()).toEqual([
    'account.suspended',
    'account.unsuspended',
    'account.limits_set',
    'account.limits_set',
    'account.limits_set',
    'keys.revoked',
    'payment.failed',
    'payment.succeeded',
    'subscription.ended',
  ]);
  expect(audit.every(({ actor }) => actor === OPERATOR)).toBe(true);
  const told = await admin(['audit', id]);
  expect(told.stdout).toContain('unpaid invoice');
  const shown = await admin(['account', 'show', id]);
  for (const text of [told.stdout, shown.stdout]) {
    expect(text).not.toContain(key);
    expect(text).not.toContain('secret');
  }
  // Fifteen processes one after another.
}, 120_000);

test('the audit log of no account is an error, of one that is erased it is told', async () => {
  const { id } = await createTestAccount(db, namespace, { tier: null });
  expect(await done('audit', id)).toEqual([]);
  const none = await admin(['audit', 'zzz']);
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('no account zzz') });
  await done('account', 'revoke-keys', id);
  await db.deleteFrom('accounts').where('id', '=', id).execute();
  expect(await done<object[]>('audit', id)).toHaveLength(1);
  expect(await done<object[]>('audit', id, '--before', '1')).toEqual([]);
});

test('a notice is published, listed and withdrawn', async () => {
  const until = '2099-01-01T00:00:00.000Z';
  const text = 'Maintenance on Sunday, 02:00 UTC';
  const made = await done<{ id: string }>(
    ...['notice', 'publish', text, '--severity', 'warning', '--until', until],
  );
  expect(made).toMatchObject({ severity: 'warning', message: text, until });
  expect(await listCurrentNotices(db)).toMatchObject([{ id: made.id }]);
  expect(await done<object[]>('notice', 'list')).toHaveLength(1);
  await done('notice', 'withdraw', made.id);
  expect(await listCurrentNotices(db)).toEqual([]);
  expect((await admin(['notice', 'withdraw', made.id])).code).toBe(1);
  const audit = await readAudit(db, null, { limit: 2 });
  expect(audit).toMatchObject([
    { action: 'notice.withdrawn', actor: OPERATOR, target: made.id },
    { action: 'notice.published', actor: OPERATOR, target: made.id },
  ]);
});

test('notices are bounded, also when many are published at once', async () => {
  const wanted = { actor: 'system', message: 'x', severity: 'info' } as const;
  const results = await Promise.all(
    Array.from({ length: NOTICE_LIMITS.currentMax + 4 }, () => publishNotice(db, wanted)),
  );
  expect(results.filter(({ kind }) => kind === 'ok')).toHaveLength(NOTICE_LIMITS.currentMax);
  expect(results.filter(({ kind }) => kind === 'limit')).toHaveLength(4);
  for (const message of ['', ' ', 'a\nb', 'a'.repeat(501)]) {
    expect((await publishNotice(db, { ...wanted, message })).kind).toBe('invalid');
  }
});

test("a generator's token is shown once, kept as its hash, and ends when it is revoked", async () => {
  const file = path.join(folder, 'credentials.jsonl');
  const args = ['--file', file];
  const ingestSees = async (token: string) => {
    const read = parseCredentials(await readFile(file));
    if (!read.ok) throw new Error(read.reason);
    return checkCredential(read.credentials, `Bearer ${token}`, nowMicros());
  };
  const until = '2099-01-01T00:00:00.000Z';
  const alpha = await done<{ token: string }>('generator', 'create', 'alpha', ...args);
  const beta = await done<{ token: string }>(
    ...['generator', 'create', 'beta', ...args, '--expires', until],
  );
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await ingestSees(alpha.token)).toEqual({ kind: 'known', name: 'alpha' });
  expect(await ingestSees(beta.token)).toEqual({ kind: 'known', name: 'beta' });
  const again = await admin(['generator', 'create', 'alpha', ...args]);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('revoke it first') });

  expect(await done('generator', 'list', ...args)).toEqual([
    { name: 'alpha', expiresAt: null, live: true },
    { name: 'beta', expiresAt: until, live: true },
  ]);
  await done('generator', 'revoke', 'alpha', ...args);
  expect(await ingestSees(alpha.token)).toEqual({ kind: 'invalid' });
  expect(await ingestSees(beta.token)).toEqual({ kind: 'known', name: 'beta' });
  // Also the last one: a file that the gateway cannot read would leave it in force.
  await done('generator', 'revoke', 'beta', ...args);
  expect(await ingestSees(beta.token)).toEqual({ kind: 'invalid' });
  expect(await readdir(folder)).toEqual(['credentials.jsonl']);

  const audit = await readAudit(db, null, { limit: 4 });
  expect(audit.map(({ action, target }) => `${action} ${target}`).reverse()).toEqual([
    'generator.created alpha',
    'generator.created beta',
    'generator.revoked alpha',
    'generator.revoked beta',
  ]);
  const kept = JSON.stringify(audit) + (await readFile(file, 'utf8'));
  for (const { token } of [alpha, beta]) {
    expect(kept).not.toContain(token);
    expect(JSON.stringify(audit)).not.toContain(createHash('sha256').update(token).digest('hex'));
  }
});

test('two generators that are made at once are both in the file', async () => {
  const file = path.join(await mkdtemp(path.join(folder, 'two-')), 'credentials.jsonl');
  const names = ['one', 'two', 'three'];
  await Promise.all(names.map((name) => done('generator', 'create', name, '--file', file)));
  const listed = await done<{ name: string }[]>('generator', 'list', '--file', file);
  expect(listed.map(({ name }) => name).sort()).toEqual([...names].sort());
});

test.each([
  ['no command', [], 2],
  ['an unknown command', ['acount'], 2],
  ['no reason', ['account', 'suspend', 'acc_x'], 2],
  ['limits without one', ['account', 'limits', 'acc_x'], 2],
  ['a limit of 0', ['account', 'limits', 'acc_x', '--rate', '0'], 2],
  ['a severity that is none', ['notice', 'publish', 'x', '--severity', 'bad'], 2],
  ['a time that is past', ['notice', 'publish', 'x', '--until', '2001-01-01'], 2],
  ['an account that is not there', ['account', 'show', 'acc_x'], 1],
  ['billing of one that is not there', ['billing', 'pay', 'acc_x'], 1],
  ['a file that is not there', ['generator', 'list', '--file', '/nowhere/file'], 1],
  ['a folder that is not there', ['generator', 'create', 'g', '--file', '/nowhere/file'], 1],
])('%s is refused with words and a code', async (_, args, code) => {
  const ended = await admin(args);
  expect(ended.code).toBe(code);
  expect(ended.stderr.trim()).not.toBe('');
  expect(ended.stdout).toBe('');
  expect(ended.stderr).not.toContain('    at ');
});

test('help is no fault', async () => {
  expect(await admin(['--help'])).toMatchObject({ code: 0, stderr: '' });
  expect((await admin(['billing', '--help'])).stdout).toContain('no money moves');
});

test('without PostgreSQL one sentence says what to do, without the password', async () => {
  for (const DATABASE_URL of ['postgres://me:hush@127.0.0.1:1/x', 'nonsense:hush']) {
    const ended = await admin(['account', 'list'], { DATABASE_URL });
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain('set DATABASE_URL');
    expect(ended.stderr).not.toContain('hush');
  }
  const fresh = await admin(['account', 'list'], { PILLOLE_NAMESPACE: 'never' });
  expect(fresh).toMatchObject({ code: 1, stderr: expect.stringContaining('provision') });
});

test('a damaged credentials file is left as it is', async () => {
  const file = path.join(folder, 'damaged');
  await writeFile(file, '{"name": "x"');
  const ended = await admin(['generator', 'create', 'g', '--file', file]);
  expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('Correct it') });
  expect(await readFile(file, 'utf8')).toBe('{"name": "x"');
});
