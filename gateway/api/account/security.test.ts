import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readAudit } from '../../../domain/accounts/audit.ts';
import { verifyAudit } from '../../../domain/accounts/audit-chain.ts';
import { packageRoot } from '../../../lib/files/package-root.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../../testing/accounts.ts';
import type { TestProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { startStream } from '../../stream/testing/start-stream.ts';
import { closeClients, connect } from '../../stream/testing/stream-client.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';

let accounts: AccountApi;
let db: Database;
let stream: TestProcess;
let streamUrl: string;

beforeAll(async () => {
  accounts = await openAccountApi({ WEBHOOK_ALLOW_LOOPBACK: 'true' });
  db = openTestDatabase(accounts.namespace);
  ({ stream, url: streamUrl } = await startStream(accounts.namespace.env));
});

afterAll(async () => {
  closeClients();
  await stream?.stop();
  await accounts?.close();
  await db?.destroy();
});

interface Shown {
  readonly event: string;
  readonly process: string;
  readonly count: number;
  readonly networks: readonly string[];
}

/** What `npm run admin -- security` shows. */
async function shown(): Promise<readonly Shown[]> {
  const entry = path.join(packageRoot, 'dist', 'deploy', 'admin', 'main.js');
  const env = { PATH: process.env.PATH, ...accounts.namespace.env };
  const args = [entry, '--json', 'security', '--since', '1h'];
  return JSON.parse((await promisify(execFile)(process.execPath, args, { env })).stdout);
}

test('refusals and actions are counted and shown, and an account sees its own, without any secret', async () => {
  const customer = await accounts.customer('watched', 'pro');
  const { body: session } = await customer.send('GET', '/api/session');
  const revoked = await createTestAccount(db, accounts.namespace, { tier: 'pro' });
  await db
    .updateTable('api_keys')
    .set({ revoked_at: new Date() })
    .where('id', '=', revoked.keyId)
    .execute();
  const withKey = (key: string) => ({ 'x-api-key': key });
  for (let n = 0; n < 30; n += 1) {
    const answer = await customer.send('GET', '/api/account', undefined, withKey(revoked.key));
    expect(answer.status).toBe(401);
  }
  await customer.send('GET', '/api/account', undefined, withKey('pil_live_wrong'));
  const noToken = { 'x-csrf-token': 'wrong' };
  const forged = await customer.send('POST', '/api/keys', { name: 'x' }, noToken);
  expect([forged.status, forged.body.code]).toEqual([403, 'csrf_token_invalid']);
  const wrong = { email: customer.email, password: 'not the password' };
  expect((await customer.send('POST', '/api/session', wrong)).status).toBe(401);
  await customer.send('POST', '/api/password/reset', { email: customer.email });
  await customer.send('POST', '/api/users/verify/resend', { email: 'nobody@example.com' });
  const hook = { url: 'http://127.0.0.1:9/hook', event_types: ['pill.published'] };
  const { body: made } = await customer.send('POST', '/api/webhooks', hook);
  expect((await customer.send('POST', `/api/webhooks/${made.endpoint.id}/test`)).status).toBe(202);
  const page = await connect(streamUrl, { key: revoked.key, origin: 'https://evil.example' });
  expect((await page.closed).code).toBe(4507);
  expect((await customer.send('DELETE', '/api/session')).status).toBe(204);

  const wanted = [
    ['api', 'key_invalid', 30],
    ['api', 'key_malformed', 1],
    ['api', 'csrf_token_invalid', 1],
    ['api', 'sign_in_refused', 1],
    ['api', 'password_reset_requested', 1],
    ['api', 'verification_resent', 1],
    ['api', 'webhook_tested', 1],
    ['api', 'signed_out', 1],
    ['stream', 'socket_origin_refused', 1],
  ] as const;
  await waitFor('all counts to be stored', async () => {
    const rows = await shown();
    return wanted.every(([process, event, count]) =>
      rows.some((row) => row.process === process && row.event === event && row.count === count),
    );
  });
  const refused = (await shown()).find(({ event }) => event === 'key_invalid')!;
  expect(refused.networks).toEqual(['127.0.0.1 30']);

  // Thirty refusals of a revoked key are one entry, or two if the first was stored alone.
  const auditOf = async (id: string, action: string) =>
    (await readAudit(db, id, { limit: 50 })).filter((entry) => entry.action === action);
  const entries = await waitFor('the entry of the revoked key', async () => {
    const found = await auditOf(revoked.id, 'access.refused');
    return found.length > 0 ? found : undefined;
  });
  expect(entries).toHaveLength(1);
  expect(entries![0]).toMatchObject({ address: '127.0.0.1', detail: { reason: 'key_revoked' } });
  // Entries of several accounts are written one after another.
  await waitFor('the entry of the missing token', async () => {
    const own = await auditOf(session.account, 'access.refused');
    const reasons = own.map(({ detail }) => (detail as { reason: string }).reason);
    return reasons.includes('csrf_token_invalid') || `${reasons}`;
  });
  const tried = await waitFor('the entry of the wrong password', async () => {
    const found = await auditOf(session.account, 'sign_in.refused');
    return found.length > 0 && found;
  });
  const reason = { reason: 'password_wrong', count: 1 };
  expect(tried).toMatchObject([{ actor: 'anyone', target: session.user.id, detail: reason }]);
  const tested = await waitFor('the entry of the test message', async () => {
    const found = await auditOf(session.account, 'webhook.tested');
    return found.length > 0 && found;
  });
  expect(tested).toMatchObject([{ target: made.endpoint.id, detail: { count: 1 } }]);
  expect(await verifyAudit(db, revoked.id)).toMatchObject({ kind: 'intact' });

  const { body } = await request(`${accounts.api.opsUrl}/metrics`);
  const metrics = await body.text();
  expect(metrics).toContain('pillole_security_events_total{event="key_invalid"} 30');
  for (const secret of [revoked.key, customer.email, session.account, '127.0.0.1', 'nobody@']) {
    expect(metrics).not.toContain(secret);
  }
});
