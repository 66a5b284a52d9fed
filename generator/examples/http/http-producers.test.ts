import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { readAll } from '../../../lib/kafka/read-all.ts';
import { createDecoder } from '../../../schemas/avro.ts';
import { topicName } from '../../../schemas/topic-catalogue.ts';
import { startIngest, type TestIngest } from '../../../testing/ingest-process.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';

const run = promisify(execFile);
const FOLDER = path.join(packageRoot, 'generator/examples/http');
const READ_MS = 60_000;

let namespace: Namespace;
let ingest: TestIngest;
let folder: string;

beforeAll(async () => {
  namespace = await createNamespace();
  ingest = await startIngest(namespace);
  await ingest.process.ready();
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-producers-'));
});

afterAll(async () => {
  await ingest?.process.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Before ingest: stores the first pill but loses the answer, refuses the second, passes the rest. */
async function openUnreliableProxy(): Promise<Server> {
  let requests = 0;
  const proxy = createServer(async (request, response) => {
    requests += 1;
    const number = requests;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (number === 2) return response.writeHead(503, { 'retry-after': '0' }).end('{}');
    const answer = await fetch(`${ingest.url}${request.url}`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: Buffer.concat(chunks),
    });
    const text = await answer.text();
    if (number === 1) return response.destroy();
    return response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return proxy;
}

/** Ids and spreads of the pills of a symbol in the log. */
async function pillsOf(symbol: string) {
  const records = await readAll(namespace.client, topicName(namespace.name, 'pills'), READ_MS);
  const own = records.filter(({ key }) => key?.toString() === symbol);
  return Promise.all(own.map(({ value }) => decodePill(value)));
}

async function decodePill(value: Buffer | null) {
  const decoder = createDecoder('pill', namespace.schemas.writerSchemas);
  const decoded = decoder.decode(value);
  if ('pendingSchema' in decoded) {
    await namespace.schemas.load(decoded.pendingSchema);
    return decodePill(value);
  }
  if (!decoded.ok) throw new Error(JSON.stringify(decoded));
  return decoded.value;
}

const TYPESCRIPT = path.join(packageRoot, 'dist/generator/examples/http/post-pill.js');
const EXAMPLES = [
  ['Python', 'PY.T', ['python3', path.join(FOLDER, 'post_pill.py')]],
  ['TypeScript', 'TS.T', [process.execPath, TYPESCRIPT]],
  ['Java', 'JAVA.T', ['java', path.join(FOLDER, 'PostPill.java')]],
] as const;
const GO = ['Go', 'GO.T', ['go', 'run', path.join(FOLDER, 'post-pill.go')]] as const;
const hasGo = spawnSync('go', ['version']).status === 0;

test.skipIf(hasGo)('the example in Go (skipped: go is not installed)', ({ skip }) => skip());

describe.each(hasGo ? [...EXAMPLES, GO] : EXAMPLES)(
  'the example in %s',
  (_, symbol, [command, ...program]) => {
    const env = { ...process.env, GOFLAGS: '-mod=mod', GO111MODULE: 'off' };

    test('stores a pill once, although an answer is lost and another is a 503', async () => {
      const proxy = await openUnreliableProxy();
      const { port } = proxy.address() as AddressInfo;
      const stack = path.join(folder, `${symbol}.json`);
      await writeFile(stack, JSON.stringify({ ingest: `http://127.0.0.1:${port}` }));
      try {
        const { stdout } = await run(command, [...program, symbol, '0.25', stack], { env });
        expect(JSON.parse(stdout)).toMatchObject({ status: 'ok' });
      } finally {
        proxy.closeAllConnections();
        proxy.close();
      }
      expect(await pillsOf(symbol)).toMatchObject([{ symbol, gross_spread_percent: 0.25 }]);
    });

    test.each([
      ['without arguments', [], 'Usage: '],
      ['without a stack', [symbol, '0.25', '/nonexistent/stack.json'], 'Run "npm start"'],
    ])('%s it says what to do', async (_name, args, message) => {
      const failed = await run(command, [...program, ...args], { env }).catch((error) => error);
      expect(failed.code).toBe(1);
      expect(failed.stderr).toContain(message);
    });
  },
);
