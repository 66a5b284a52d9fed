import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkCredential, parseCredentials } from '../../domain/access/generator-credentials.ts';
import { readAudit } from '../../domain/accounts/audit.ts';
import { readAccount } from '../../domain/accounts/operator.ts';
import {
  listCurrentNotices,
  NOTICE_LIMITS,
  publishNotice,
} from '../../domain/accounts/operator-notices.ts';
import { openSupportTicket } from '../../domain/support/tickets.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { nowMicros } from '../../lib/timing/clock.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';

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

function admin(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const entry = path.join(packageRoot, 'dist', 'deploy', 'admin', 'main.js');
  const all = { PATH: process.env.PATH, ...namespace.env, ...env };
  return new Promise((resolve) => {
    execFile(process.execPath, [entry, ...args], { env: all }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** Runs a command that must succeed. @returns its result */
async function run<T = Record<string, unknown>>(...args: readonly string[]): Promise<T> {
  const ended = await admin(['--json', ...args]);
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(ended.stdout) as T;
}

test('suspending, limiting and revoking the keys of an account is audited', async () => {
  const { id, key } = await createTestAccount(db, namespace, { tier: 'basic' });
  await db
    .insertInto('users')
    .values({ id: 'usr_admin', account_id: id, email: 'ops@example.com', password_hash: 'secret' })
    .execute();

  await run('account', 'suspend', 'OPS@example.com', '--reason', 'unpaid invoice');
  expect(await run('account', 'show', id)).toMatchObject({
    status: 'suspended',
    suspendedReason: 'unpaid invoice',
    liveKeys: 1,
    subscription: { tier: 'basic' },
  });
  const twice = await admin(['account', 'suspend', id, '--reason', 'again']);
  expect(twice).toMatchObject({ code: 1, stderr: expect.stringContaining('is not active') });
  await run('account', 'unsuspend', id);
  await run('account', 'limits', id, '--rate', '500', '--burst', '900');
  await run('account', 'limits', id, '--calls-per-day', '5000');
  const raised = { rate: 500, burst: 900, callsPerDay: 5_000 };
  expect(await readAccount(db, id)).toMatchObject({ status: 'active', limits: raised });
  await run('account', 'limits', id, '--reset');
  expect((await readAccount(db, id))?.limits).toEqual({
    rate: null,
    burst: null,
    callsPerDay: null,
  });
  expect(await run('account', 'revoke-keys', id)).toEqual({ account: id, revoked: 1 });
  expect(await run('billing', 'fail-payment', id)).toMatchObject({ event: 'payment.failed' });
  await run('billing', 'pay', id);
  await run('billing', 'end', id);
  expect(await run<object[]>('account', 'list')).toMatchObject([
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
  const log = await admin(['audit', id]);
  expect(log.stdout).toContain('unpaid invoice');
  const shown = await admin(['account', 'show', id]);
  for (const text of [log.stdout, shown.stdout]) {
    expect(text).not.toContain(key);
    expect(text).not.toContain('secret');
  }
  // Fifteen processes run one after another.
});

test('the second factors of an account are removed, audited and mailed; none is an error', async () => {
  const { id } = await createTestAccount(db, namespace, { tier: 'pro' });
  for (const name of ['bound', 'open']) {
    const email = `${name}@example.com`;
    await db
      .insertInto('users')
      .values({ id: `usr_${name}`, account_id: id, email, password_hash: 'secret' })
      .execute();
    const confirmed_at = name === 'bound' ? new Date() : null;
    await db
      .insertInto('second_factors')
      .values({ user_id: `usr_${name}`, sealed: Buffer.alloc(64), confirmed_at })
      .execute();
  }
  const removed = await run('account', 'remove-second-factor', 'bound@example.com');
  expect(removed).toEqual({ account: id, removed: 1 });
  const left = await db.selectFrom('second_factors').select('user_id').execute();
  expect(left).toEqual([{ user_id: 'usr_open' }]);
  expect(await readAudit(db, id, { limit: 1 })).toMatchObject([
    { action: 'second_factor.removed', actor: OPERATOR, target: 'usr_bound' },
  ]);
  const raised = await db
    .selectFrom('account_events')
    .select('type')
    .where('account_id', '=', id)
    .execute();
  expect(raised).toEqual([{ type: 'second_factor.removed' }]);
  const again = await admin(['account', 'remove-second-factor', id]);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('has a second factor') });
});

test('tickets are listed, shown, answered from a file and closed', async () => {
  const { id: accountId } = await createTestAccount(db, namespace, { tier: 'pro' });
  const opened = await openSupportTicket(db, {
    ...{ accountId, tier: 'pro', subject: 'A socket', message: 'Why does it end?' },
  });
  const { id } = opened as { id: string };
  expect(await run('support', 'list')).toMatchObject([{ id, tier: 'pro', subject: 'A socket' }]);
  const file = path.join(await mkdtemp(path.join(os.tmpdir(), 'pillole-answer-')), 'answer.txt');
  await writeFile(file, '\n  ');
  const blank = await admin(['support', 'answer', id, file]);
  expect(blank).toMatchObject({ code: 1, stderr: expect.stringContaining('is blank') });
  await writeFile(file, 'Its key had expired.\n');
  expect(await run('support', 'answer', id, file)).toEqual({ ticket: id, state: 'answered' });
  expect(await run('support', 'list')).toEqual([]);
  expect(await run('support', 'show', id)).toMatchObject({
    state: 'answered',
    messages: [{ message: 'Why does it end?' }, { message: 'Its key had expired.' }],
  });
  expect(await run('support', 'close', id)).toEqual({ ticket: id, state: 'closed' });
  for (const args of [['show'], ['answer', file], ['close']]) {
    const [command, ...rest] = args as [string, ...string[]];
    const unknown = await admin(['support', command, 'tkt_none', ...rest]);
    expect(unknown).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no ticket tkt_none'),
    });
  }
});

test('a closed account is reopened by its address, and the users get a mail', async () => {
  const { id } = await createTestAccount(db, namespace, { tier: 'basic' });
  const user = { id: 'usr_closed', account_id: id, email: 'back@example.com', password_hash: '-' };
  await db.insertInto('users').values(user).execute();
  const open = await admin(['account', 'reopen', id]);
  expect(open).toMatchObject({ code: 1, stderr: expect.stringContaining('is not closed') });
  await db
    .updateTable('accounts')
    .set({ status: 'closed', closed_at: new Date() })
    .where('id', '=', id)
    .execute();
  expect(await run('account', 'reopen', 'back@example.com')).toEqual({
    account: id,
    status: 'active',
    keys: 'ended',
    subscription: 'ended',
  });
  const [entry] = await readAudit(db, id, { limit: 1 });
  expect(entry).toMatchObject({ action: 'account.reopened', actor: OPERATOR });
  await run('account', 'suspend', id, '--reason', 'a test');
  await run('account', 'unsuspend', id);
  const events = await db
    .selectFrom('account_events')
    .select(['type', 'data'])
    .where('account_id', '=', id)
    .orderBy('id')
    .execute();
  expect(events).toEqual([
    { type: 'account.reopened', data: { status: 'active' } },
    { type: 'account.suspended', data: { reason: 'operator', detail: 'a test' } },
    { type: 'account.unsuspended', data: {} },
  ]);
}, 120_000);

test('an export of the audit log verifies, alone and against the database, until either is changed', async () => {
  const { id } = await createTestAccount(db, namespace, { tier: 'pro' });
  await run('account', 'limits', id, '--rate', '3');
  await run('account', 'revoke-keys', id);
  const file = path.join(folder, 'audit.ndjson');
  const exported = await run('audit', 'export', id, file);
  expect(exported).toMatchObject({ entries: 2, chain: 'intact' });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await run('audit', 'verify-file', file)).toMatchObject({ hash: exported.hash });
  await run('account', 'suspend', id, '--reason', 'a test');
  expect(await run('audit', 'verify', id, '--export', file)).toMatchObject({ entries: 3 });
  expect((await admin(['audit', 'export', id, file])).stderr).toMatch(/exists already/);
  expect((await admin(['audit', 'verify', 'zzz'])).stderr).toMatch(/no account zzz/);

  // Whoever replaces the whole log has a sound chain, but not the one of the export.
  const entries = await readAudit(db, id, { limit: 9 });
  await sql`DELETE FROM audit_log WHERE account_id = ${id}`.execute(db);
  await sql`DELETE FROM audit_chains WHERE chain = ${id}`.execute(db);
  for (const { actor } of entries) {
    await db.insertInto('audit_log').values({ account_id: id, actor, action: 'x.y' }).execute();
  }
  expect(await run('audit', 'verify', id)).toMatchObject({ entries: 3 });
  const replaced = await admin(['audit', 'verify', id, '--export', file]);
  expect(replaced).toMatchObject({ code: 1, stderr: expect.stringMatching(/log was replaced/) });

  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('keys.revoked', 'keys.rotated'));
  const changed = await admin(['audit', 'verify-file', file]);
  await rm(file);
  expect(changed).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/was changed/),
  });
});

test('the audit log of an unknown account is an error, but the log of an erased account is shown', async () => {
  const { id } = await createTestAccount(db, namespace, { tier: null });
  expect(await run('audit', id)).toEqual([]);
  const none = await admin(['audit', 'zzz']);
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('no account zzz') });
  await run('account', 'revoke-keys', id);
  await db.deleteFrom('accounts').where('id', '=', id).execute();
  expect(await run<object[]>('audit', id)).toHaveLength(1);
  expect(await run<object[]>('audit', id, '--before', '1')).toEqual([]);
});

test('a notice is published, listed and withdrawn', async () => {
  const until = '2099-01-01T00:00:00.000Z';
  const text = 'Maintenance on Sunday, 02:00 UTC';
  const made = await run<{ id: string }>(
    ...['notice', 'publish', text, '--severity', 'warning', '--until', until],
  );
  expect(made).toMatchObject({ severity: 'warning', message: text, until });
  expect(await listCurrentNotices(db)).toMatchObject([{ id: made.id }]);
  expect(await run<object[]>('notice', 'list')).toHaveLength(1);
  await run('notice', 'withdraw', made.id);
  expect(await listCurrentNotices(db)).toEqual([]);
  expect((await admin(['notice', 'withdraw', made.id])).code).toBe(1);
  const audit = await readAudit(db, null, { limit: 2 });
  expect(audit).toMatchObject([
    { action: 'notice.withdrawn', actor: OPERATOR, target: made.id },
    { action: 'notice.published', actor: OPERATOR, target: made.id },
  ]);
});

test('the number of notices is bounded, even if many are published at once', async () => {
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

test("a generator's token is shown once, stored as a hash, and ends when it is revoked", async () => {
  const file = path.join(folder, 'credentials.jsonl');
  const args = ['--file', file];
  const ingestSees = async (token: string) => {
    const read = parseCredentials(await readFile(file));
    if (!read.ok) throw new Error(read.reason);
    return checkCredential(read.credentials, `Bearer ${token}`, nowMicros());
  };
  const until = '2099-01-01T00:00:00.000Z';
  const alpha = await run<{ token: string }>('generator', 'create', 'alpha', ...args);
  const beta = await run<{ token: string }>(
    ...['generator', 'create', 'beta', ...args, '--expires', until],
  );
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await ingestSees(alpha.token)).toEqual({ kind: 'known', name: 'alpha' });
  expect(await ingestSees(beta.token)).toEqual({ kind: 'known', name: 'beta' });
  const again = await admin(['generator', 'create', 'alpha', ...args]);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('revoke it first') });

  expect(await run('generator', 'list', ...args)).toEqual([
    { name: 'alpha', expiresAt: null, live: true },
    { name: 'beta', expiresAt: until, live: true },
  ]);
  await run('generator', 'revoke', 'alpha', ...args);
  expect(await ingestSees(alpha.token)).toEqual({ kind: 'invalid' });
  expect(await ingestSees(beta.token)).toEqual({ kind: 'known', name: 'beta' });
  // The last token too: a file that the gateway cannot read would keep it in force.
  await run('generator', 'revoke', 'beta', ...args);
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

test('generators that are created at once are all in the file', async () => {
  const file = path.join(await mkdtemp(path.join(folder, 'two-')), 'credentials.jsonl');
  const names = ['one', 'two', 'three'];
  await Promise.all(names.map((name) => run('generator', 'create', name, '--file', file)));
  const listed = await run<{ name: string }[]>('generator', 'list', '--file', file);
  expect(listed.map(({ name }) => name).sort()).toEqual([...names].sort());
});

test.concurrent.each([
  ['no command', [], 2],
  ['an unknown command', ['acount'], 2],
  ['no reason', ['account', 'suspend', 'acc_x'], 2],
  ['limits without a limit', ['account', 'limits', 'acc_x'], 2],
  ['a limit of 0', ['account', 'limits', 'acc_x', '--rate', '0'], 2],
  ['an unknown severity', ['notice', 'publish', 'x', '--severity', 'bad'], 2],
  ['a time in the past', ['notice', 'publish', 'x', '--until', '2001-01-01'], 2],
  ['an unknown account', ['account', 'show', 'acc_x'], 1],
  ['billing of an unknown account', ['billing', 'pay', 'acc_x'], 1],
  ['a missing file', ['generator', 'list', '--file', '/nowhere/file'], 1],
  ['a missing folder', ['generator', 'create', 'g', '--file', '/nowhere/file'], 1],
])('%s is refused with a message and an exit code', async (_, args, code) => {
  const ended = await admin(args);
  expect(ended.code).toBe(code);
  expect(ended.stderr.trim()).not.toBe('');
  expect(ended.stdout).toBe('');
  expect(ended.stderr).not.toContain('    at ');
});

test.concurrent('help is not an error', async () => {
  expect(await admin(['--help'])).toMatchObject({ code: 0, stderr: '' });
  expect((await admin(['billing', '--help'])).stdout).toContain('no money moves');
});

test.concurrent('without PostgreSQL, one sentence says what to do and hides the password', async () => {
  for (const DATABASE_URL of ['postgres://me:hush@127.0.0.1:1/x', 'nonsense:hush']) {
    const ended = await admin(['account', 'list'], { DATABASE_URL });
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/set DATABASE_URL|DATABASE_URL must be a URL with postgres:/);
    expect(ended.stderr).not.toContain('hush');
  }
  const fresh = await admin(['account', 'list'], { PILLOLE_NAMESPACE: 'never' });
  expect(fresh).toMatchObject({ code: 1, stderr: expect.stringContaining('provision') });
});

test.concurrent('a damaged credentials file stays as it is', async () => {
  const file = path.join(folder, 'damaged');
  await writeFile(file, '{"name": "x"');
  const ended = await admin(['generator', 'create', 'g', '--file', file]);
  expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('Correct it') });
  expect(await readFile(file, 'utf8')).toBe('{"name": "x"');
});
