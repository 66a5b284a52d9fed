import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { openFrontProxy } from '../../testing/front-proxy.ts';
import { startIngest } from '../../testing/ingest-process.ts';
import { createNamespace } from '../../testing/namespace.ts';
import { waitFor } from '../../testing/wait.ts';

test('the log names the client of a refused credential, once, and never its proxy', async (context) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-ingest-'));
  context.onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'generators.json');
  const sha256 = createHash('sha256')
    .update(`gen_${'a'.repeat(40)}`)
    .digest('hex');
  writeFileSync(file, JSON.stringify({ name: 'a', sha256 }));
  const ingest = await startIngest(await createNamespace(), {
    INGEST_CREDENTIALS_FILE: file,
    TRUSTED_PROXIES: 'loopback',
  });
  context.onTestFinished(async () => void (await ingest.process.stop()));
  await ingest.process.ready();
  const proxy = openFrontProxy('x-forwarded-for', ingest.port);
  context.onTestFinished(proxy.close);
  const url = `http://127.0.0.1:${await proxy.portFor('203.0.113.7')}/api/pillole`;
  const headers = {
    authorization: `Bearer gen_${'b'.repeat(40)}`,
    'x-forwarded-for': '198.51.100.7',
  };
  for (let i = 0; i < 3; i += 1) {
    const { statusCode, body } = await request(url, { method: 'POST', headers, body: '{}' });
    await body.dump();
    expect(statusCode).toBe(403);
  }
  const lines = () => ingest.process.output().match(/.*a credential was refused.*/g) ?? [];
  await waitFor('the log', () => lines().length > 0);
  expect(lines()).toHaveLength(1);
  expect(lines()[0]).toContain('"address":"203.0.113.7"');
});
