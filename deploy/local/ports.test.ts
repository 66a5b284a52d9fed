import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openPortBook, type PortBook } from './ports.ts';

let folder: string;
let file: string;
const books: PortBook[] = [];
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole ports-'));
  file = path.join(folder, 'ports.json');
});
afterEach(() => {
  for (const book of books.splice(0)) book.release();
  rmSync(folder, { recursive: true, force: true });
});

function open(bookFile = file): PortBook {
  const book = openPortBook(bookFile);
  books.push(book);
  return book;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

test('the wanted port is taken when free, and the same one at the next start', async () => {
  const wanted = await freePort();
  const first = open();
  expect(await first.choose('api', wanted)).toBe(wanted);
  first.release();
  expect(await open().choose('api', 0)).toBe(wanted);
});

test.each(['127.0.0.1', '0.0.0.0'])('a port someone has on %s is replaced', async (host) => {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const book = open();
  const chosen = await book.choose('api', port);
  expect(chosen).not.toBe(port);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ api: chosen });
  server.close();
});

test('two stacks that start at once do not choose alike', async () => {
  const wanted = await freePort();
  const [one, two] = [open(), open(path.join(folder, 'other.json'))];
  const chosen = await Promise.all([one.choose('api', wanted), two.choose('api', wanted)]);
  expect(new Set(chosen).size).toBe(2);
  expect(chosen).toContain(wanted);
});

test('a broken book counts as empty', async () => {
  writeFileSync(file, '[');
  expect(await open().choose('api', 0)).toBeGreaterThan(0);
});
