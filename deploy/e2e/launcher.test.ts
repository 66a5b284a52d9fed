import { existsSync } from 'node:fs';
import path from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePill } from '../../lib/testing/pills.ts';
import { createPoster } from '../../lib/testing/poster.ts';
import {
  isAlive,
  launchStack,
  makeStackFolder,
  removeStackFolder,
  type Stack,
} from '../../lib/testing/stack.ts';
import { waitFor } from '../../lib/testing/wait.ts';

let folder: string;
let stack: Stack | undefined;

beforeAll(async () => {
  folder = await makeStackFolder();
});

afterAll(async () => {
  await stack?.stop();
  await removeStackFolder(folder);
});

async function post(to: Stack, symbol: string): Promise<string> {
  const poster = createPoster(to.addresses().ingest);
  try {
    return await poster.post(makePill({ symbol }));
  } finally {
    await poster.close();
  }
}

async function cursorOf(from: Stack, symbol: string): Promise<string | undefined> {
  const { statusCode, body } = await request(
    `${from.addresses().api}/api/pills/latest?symbol=${symbol}`,
    { headers: { 'x-api-key': from.demoKeys().institutional } },
  );
  const answer = (await body.json()) as { data: { cursor: string } };
  return statusCode === 200 ? answer.data.cursor : undefined;
}

test('one life after another: Ctrl-C, the data again, kill -9, the data again', async () => {
  stack = await launchStack(folder);
  const { processes, ...addresses } = stack.addresses();
  expect(Object.keys(processes)).toEqual([
    'ingest',
    'latest',
    'analytics',
    'api',
    'stream',
    'dedicated',
    'webhooks',
  ]);
  expect(Object.keys(addresses)).toEqual([
    ...['ingest', 'api', 'stream', 'kafka', 'registry', 'clickhouse', 'postgres'],
  ]);
  for (const { pid, metrics } of Object.values(processes)) {
    expect(isAlive(pid)).toBe(true);
    const { statusCode, body } = await request(metrics);
    expect(statusCode).toBe(200);
    expect(await body.text()).toContain('process_cpu_seconds_total');
  }

  // The page shows the market of the demo account.
  const page = await request(`${addresses.api}/console/settings`);
  expect(await page.body.json()).toEqual({ stream_url: addresses.stream, demo: true });

  await expect(launchStack(folder)).rejects.toThrow(/already runs/);

  const first = await post(stack, 'FIRST.T');
  await waitFor('latest', async () => (await cursorOf(stack!, 'FIRST.T')) === first);
  const pids = Object.values(stack.pids());
  expect(pids.length).toBe(11);
  expect(await stack.stop()).toBe(0);
  expect(pids.filter(isAlive)).toEqual([]);
  for (const name of ['stack.json', 'lock'])
    expect(existsSync(path.join(folder, name))).toBe(false);

  stack = await launchStack(folder);
  expect(await cursorOf(stack, 'FIRST.T')).toBe(first);
  const second = await post(stack, 'SECOND.T');
  const orphans = Object.values(stack.pids());
  stack.launcher.kill('SIGKILL');
  await stack.exited;

  stack = await launchStack(folder);
  expect(orphans.filter(isAlive)).toEqual([]);
  expect(await cursorOf(stack, 'FIRST.T')).toBe(first);
  await waitFor('the pill before the kill', async () => {
    return (await cursorOf(stack!, 'SECOND.T')) === second;
  });
  expect(await stack.stop()).toBe(0);
  stack = undefined;
}, 240_000);
