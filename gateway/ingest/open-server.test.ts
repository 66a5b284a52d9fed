import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FOREIGN_HEADS, LOCAL_HEADS } from '../../testing/foreign-heads.ts';
import {
  countPillsInLog,
  jsonOf,
  startIngest,
  type TestIngest,
} from '../../testing/ingest-process.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { startProcess } from '../../testing/process.ts';
import { sendRaw } from '../../testing/raw-http.ts';
import { pillOf } from './testing/post.ts';

let namespace: Namespace;
let open: TestIngest;

beforeAll(async () => {
  namespace = await createNamespace();
  open = await startIngest(namespace);
  await open.process.ready();
});
afterAll(() => open?.process.stop());

/** Posts a new pill with these header lines, and nothing that an HTTP client would add. */
async function post({ port }: TestIngest, lines: readonly string[], version = '1.1') {
  const body = JSON.stringify(pillOf());
  const length = `Content-Length: ${body.length}`;
  const head = [`POST /api/pillole HTTP/${version}`, 'Content-Type: application/json', length];
  const answer = await sendRaw(port, `${[...head, ...lines].join('\r\n')}\r\n\r\n${body}`);
  return jsonOf(answer);
}

describe('open on this machine', () => {
  test.each(FOREIGN_HEADS)('%s is refused, and nothing is stored', async (_name, lines, code) => {
    const before = await countPillsInLog(namespace);
    const refused = { status: 403, code, stored: 'no', detail: expect.stringContaining('header') };
    expect(await post(open, lines)).toMatchObject(refused);
    expect(await countPillsInLog(namespace)).toBe(before);
  });

  test.each([
    ['a page of this machine, since no page uses ingest', ['Origin: http://localhost:3000']],
    ['a page by Sec-Fetch-Site alone', ['Sec-Fetch-Site: same-origin']],
  ])('%s is refused', async (_name, lines) => {
    const answer = await post(open, ['Host: localhost', ...lines]);
    expect(answer).toMatchObject({ status: 403, code: 'local_only', stored: 'no' });
  });

  test.each(LOCAL_HEADS)('%s passes', async (_name, lines) => {
    expect(await post(open, lines)).toEqual({ status: 'ok' });
  });

  test('without Host, HTTP/1.0 passes and HTTP/1.1 is malformed', async () => {
    expect(await post(open, [], '1.0')).toMatchObject({ status: 'ok' });
    expect(await post(open, [])).toMatchObject({ status: 400, code: 'http_malformed' });
  });

  test('the batch route has the same rule', async () => {
    const lines = ['Host: example.com', 'Content-Type: application/json', 'Content-Length: 2'];
    const head = ['POST /api/pillole/batch HTTP/1.1', ...lines].join('\r\n');
    const answer = await sendRaw(open.port, `${head}\r\n\r\n[]`);
    expect(jsonOf(answer)).toMatchObject({ status: 403, code: 'local_only' });
  });

  test('one line of the start log says what is open and why', () => {
    const lines = open.process
      .output()
      .split('\n')
      .filter((line) => line.includes('"open: '));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      '"open: pills without a credential (no INGEST_CREDENTIALS_FILE, and every address is of this machine)"',
    );
  });
});

describe('other settings', () => {
  async function using<T>(env: Record<string, string>, use: (ingest: TestIngest) => Promise<T>) {
    const own = await startIngest(namespace, env);
    try {
      await own.process.ready();
      return await use(own);
    } finally {
      await own.process.stop();
    }
  }

  test('behind a TLS proxy on the same machine, an open server does not start', async () => {
    for (const env of [
      { INGEST_URL: 'https://ingest.example.com' },
      { PUBLIC_URL: 'https://api.example.com' },
      { TRUSTED_PROXIES: '127.0.0.1' },
    ]) {
      const process = await startProcess('gateway/ingest/main.js', [], {
        ...namespace.env,
        ...env,
      });
      expect(await process.exited).toBe(2);
      const [name] = Object.keys(env);
      expect(process.output()).toMatch(
        new RegExp(`^ingest cannot start: ${name} [^\\n]+ INGEST_CREDENTIALS_FILE[^\\n]+\\n$`),
      );
    }
  });

  test('with credentials, a proxy in front is expected: its headers and name pass', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-open-'));
    const token = `gen_${'a'.repeat(40)}`;
    const file = path.join(folder, 'generators');
    const sha256 = createHash('sha256').update(token).digest('hex');
    writeFileSync(file, JSON.stringify({ name: 'a', sha256 }));
    const env = { INGEST_CREDENTIALS_FILE: file, INGEST_URL: 'https://ingest.example.com' };
    try {
      await using(env, async (closed) => {
        const lines = ['Host: ingest.example.com', 'X-Forwarded-For: 192.0.2.1'];
        expect(await post(closed, lines)).toMatchObject({ code: 'credential_missing' });
        const known = [...lines, `Authorization: Bearer ${token}`];
        expect(await post(closed, known)).toEqual({ status: 'ok' });
        expect(closed.process.output()).toContain('"open: nothing"');
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('opened explicitly, its own public name passes, but no other name and no proxy', async () => {
    const env = { INGEST_OPEN: 'yes', INGEST_URL: 'https://ingest.example.com' };
    await using(env, async (opened) => {
      expect(await post(opened, ['Host: ingest.example.com'])).toEqual({ status: 'ok' });
      expect(await post(opened, ['Host: example.com'])).toMatchObject({ code: 'local_only' });
      const forwarded = await post(opened, ['Host: ingest.example.com', 'Via: 1.1 proxy']);
      expect(forwarded).toMatchObject({ status: 403, code: 'proxy_refused' });
      expect(opened.process.output()).toContain('and INGEST_OPEN=yes)');
    });
  });

  test('opened on a private network, any name passes, but no page and no proxy', async () => {
    const env = { INGEST_HOST: '0.0.0.0', INGEST_PUBLIC: 'yes', INGEST_OPEN: 'yes' };
    await using(env, async (opened) => {
      expect(await post(opened, ['Host: ingest.internal:8081'])).toEqual({ status: 'ok' });
      const page = ['Host: ingest.internal', 'Origin: http://ingest.internal'];
      expect(await post(opened, page)).toMatchObject({ status: 403, code: 'local_only' });
      const forwarded = await post(opened, ['Host: ingest.internal', 'X-Real-IP: 192.0.2.1']);
      expect(forwarded).toMatchObject({ status: 403, code: 'proxy_refused' });
      expect(opened.process.output()).toContain('ingest in clear on 0.0.0.0 (INGEST_PUBLIC=yes); ');
    });
  });
});
