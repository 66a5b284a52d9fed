import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openPortAllocator, type PortAllocator } from './port-allocator.ts';

let folder: string;
let file: string;
const allocators: PortAllocator[] = [];
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole ports-'));
  file = path.join(folder, 'ports.json');
});
afterEach(() => {
  for (const allocator of allocators.splice(0)) allocator.release();
  rmSync(folder, { recursive: true, force: true });
});

function open(portsFile = file): PortAllocator {
  const allocator = openPortAllocator(portsFile);
  allocators.push(allocator);
  return allocator;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

test('the preferred port is taken if free, and again at the next start', async () => {
  const preferred = await freePort();
  const first = open();
  expect(await first.allocate('api', preferred)).toBe(preferred);
  first.release();
  expect(await open().allocate('api', 0)).toBe(preferred);
});

test.each(['127.0.0.1', '0.0.0.0'])('a port in use on %s is replaced', async (host) => {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const chosen = await open().allocate('api', port);
  expect(chosen).not.toBe(port);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ api: chosen });
  server.close();
});

test('all allocated ports are listed, so that webhooks never lead to them', async () => {
  const ports = open();
  expect(ports.allocated()).toEqual([]);
  const chosen = [await ports.allocate('kafka', 0), await ports.allocate('api-metrics', 0)];
  expect(ports.allocated()).toEqual(chosen);
});

test('two stacks that start at once get different ports', async () => {
  const preferred = await freePort();
  const [one, two] = [open(), open(path.join(folder, 'other.json'))];
  const chosen = await Promise.all([
    one.allocate('api', preferred),
    two.allocate('api', preferred),
  ]);
  expect(new Set(chosen).size).toBe(2);
  expect(chosen).toContain(preferred);
});

test('a damaged file counts as empty', async () => {
  writeFileSync(file, '[');
  expect(await open().allocate('api', 0)).toBeGreaterThan(0);
});
