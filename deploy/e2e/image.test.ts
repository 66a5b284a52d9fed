import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NODE_ARGUMENTS } from '../../lib/child-process/node-arguments.ts';
import { databaseName, openClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';
import { createClient } from '../../sdk/index.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { createNamespace, newNamespaceName, testEngines } from '../../testing/namespace.ts';
import { makePill } from '../../testing/pills.ts';
import { getPort } from '../../testing/ports.ts';
import { createPoster } from '../../testing/poster.ts';
import { waitFor } from '../../testing/wait.ts';
import { readRecipe } from '../image/dockerfile.ts';
import { runInTree, startInTree, type TreeProcess } from '../image/testing/tree-process.ts';
import { assembleTree, IMAGE_BYTES_MAX } from '../image/tree.ts';
import { IMAGE_NODE } from '../tools/npm-package.ts';

/** Mounts and users need root; CI has it. */
const isRoot = process.getuid?.() === 0 && process.platform === 'linux';
const recipe = readRecipe();
const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-image-'));
const deps = { tree: path.join(folder, 'tree'), secrets: path.join(folder, 'secrets') };
const name = newNamespaceName();
const env = {
  PILLOLE_NAMESPACE: name,
  KAFKA_BROKERS: testEngines().kafkaBrokers,
  SCHEMA_REGISTRY_URL: testEngines().registryUrl,
  CLICKHOUSE_URL: testEngines().clickhouseUrl,
  DATABASE_URL: testEngines().postgresUrl,
  KEY_PEPPER_FILE: '/run/secrets/pepper',
};
const running: TreeProcess[] = [];

async function start(args: readonly string[], settings: Record<string, string> = {}) {
  const one = await startInTree(deps, args, { ...env, ...settings });
  running.push(one);
  await one.ready();
  return one;
}

describe.skipIf(!isRoot)('the files of the image, without Docker', () => {
  let bytes = 0;

  beforeAll(async () => {
    const { layers } = await assembleTree(deps.tree);
    bytes = layers.reduce((sum, layer) => sum + layer.bytes, 0);
    mkdirSync(deps.secrets);
    const pepper = path.join(deps.secrets, 'pepper');
    copyFileSync(testEngines().pepperFile, pepper);
    chownSync(pepper, 65534, 65534);
    chmodSync(pepper, 0o400);
    chmodSync(folder, 0o755);
  });

  afterAll(async () => {
    await Promise.all(running.map((one) => one.stop()));
    await rm(folder, { recursive: true, force: true });
  });

  test('are at most 250 MB by the sum of the layers', () => {
    expect(bytes).toBeGreaterThan(100_000_000);
    expect(bytes).toBeLessThanOrEqual(IMAGE_BYTES_MAX);
  });

  test('run by exec form as nobody: tini is process 1, node its child, npm and a shell are absent', () => {
    expect(recipe.bases).toEqual([`node:${IMAGE_NODE.version}-bookworm-slim`, 'scratch']);
    expect(recipe.user).toBe('65534:65534');
    expect(recipe.entrypoint).toEqual(['/usr/bin/tini', '--', '/usr/bin/node', ...NODE_ARGUMENTS]);
    expect(JSON.stringify([recipe.command, recipe.healthCheck])).not.toMatch(/npm|sh"/);
  });

  test('contain a binary of uWebSockets.js that loads on their glibc and listens', async () => {
    expect(recipe.runs).toHaveLength(1);
    const run = runInTree(deps, recipe.runs[0]!);
    expect([await run.exited, run.output()]).toEqual([0, '']);
    // The check fails where the binary is missing.
    const missing = runInTree(deps, ['/usr/bin/node', '-e', 'require("/app/no.node")']);
    expect(await missing.exited).toBe(1);
  });

  test('carry a pill from ingest over Kafka to latest, stream and ClickHouse, from a read-only root', async () => {
    const provision = runInTree(deps, [...recipe.entrypoint, 'dist/deploy/provision-main.js'], {
      ...env,
      PILLS_PARTITIONS: '3',
    });
    expect([await provision.exited, provision.output()]).toEqual([
      0,
      expect.stringContaining('"partitions":3'),
    ]);
    const [ingest, api, stream] = [await getPort(), await getPort(), await getPort()];
    const first = await start(['dist/gateway/ingest/main.js'], { INGEST_PORT: String(ingest) });
    await Promise.all([
      start(['dist/pipelines/main.js', 'latest']),
      start(['dist/pipelines/main.js', 'analytics']),
    ]);
    await Promise.all([
      start(['dist/gateway/api/main.js'], { API_PORT: String(api) }),
      start(['dist/gateway/stream/main.js'], { STREAM_PORT: String(stream) }),
    ]);
    expectEnclosed(first);
    const { metricsPort: METRICS_PORT } = first;
    expect(await runInTree(deps, recipe.healthCheck, { METRICS_PORT }).exited).toBe(0);
    expect(await runInTree(deps, recipe.healthCheck, { METRICS_PORT: '1' }).exited).toBe(1);

    const namespace = await createNamespace({}, name);
    expect(namespace.settings.partitions).toBe(3);
    const db = openTestDatabase(namespace);
    const { key } = await createTestAccount(db, namespace, { tier: 'pro' });
    await db.destroy();
    const apiUrl = `http://127.0.0.1:${api}`;
    const client = createClient({ apiUrl, streamUrl: `ws://127.0.0.1:${stream}`, key });
    const socket = client.stream({ symbols: '*', snapshot: false, fillGaps: false });
    const streamed: string[] = [];
    let isLive = false;
    socket.on('pill', ({ id }) => streamed.push(id));
    socket.on('open', () => {
      isLive = true;
    });
    await waitFor('the socket to be live', () => isLive);

    const pill = makePill({ symbol: 'IMAGE.T' });
    const poster = createPoster(`http://127.0.0.1:${ingest}`);
    const cursor = await poster.post(pill);
    await poster.close();
    expect(cursor).toMatch(/^[0-2]-\d+$/);
    await waitFor('the socket to get the pill', () => streamed.includes(pill.id));
    await waitFor('the latest pill', async () => {
      const { body } = await request(`${apiUrl}/api/pills/latest?symbol=IMAGE.T`, {
        headers: { 'x-api-key': key },
      });
      const text = await body.text();
      return text.includes(pill.id) || text;
    });
    const clickhouse = openClickHouse({ url: env.CLICKHOUSE_URL, database: databaseName(name) });
    await waitFor('the row', async () => {
      const answer = await clickhouse.query({
        query: 'SELECT id FROM pills',
        format: 'JSONEachRow',
      });
      const rows = await answer.json<{ id: string }>();
      return rows.some(({ id }) => id === pill.id) || JSON.stringify(rows);
    });
    await clickhouse.close();
    socket.close();

    for (const one of running.splice(0)) expect([await one.stop(), one.output()]).toContain(0);
  });
});

/** The process has no rights, its root is read-only, and tini is its process 1. */
function expectEnclosed(one: TreeProcess): void {
  const status = readFileSync(`/proc/${one.pid()}/status`, 'utf8');
  expect(status).toMatch(/^Uid:\t65534\t65534\t65534\t65534$/m);
  expect(status).toMatch(/^CapEff:\t0+$/m);
  expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  expect(status).toMatch(/^NSpid:\t\d+\t1$/m);
  expect(readFileSync(`/proc/${one.pid()}/comm`, 'utf8')).toBe('tini\n');
  const mounts = readFileSync(`/proc/${one.pid()}/mountinfo`, 'utf8').split('\n');
  const root = mounts.map((line) => line.split(' ')).find(([, , , , point]) => point === '/');
  expect(root?.[5]?.split(',')).toContain('ro');
  const [child = ''] = readFileSync(`/proc/${one.pid()}/task/${one.pid()}/children`, 'utf8')
    .trim()
    .split(' ');
  expect(readFileSync(`/proc/${child}/cmdline`, 'utf8')).toMatch(/^\/usr\/bin\/node\0/);
}
