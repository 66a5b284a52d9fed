import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import vm from 'node:vm';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXIT_CODES } from './cli/exit-codes.ts';
import { pillFrame, sendHandover } from './testing/scripted-frames.ts';
import { useScriptedServer } from './testing/use-scripted-server.ts';
import { VERSION } from './version.ts';

const fixture = useScriptedServer();
const run = promisify(execFile);
const source = import.meta.dirname;
const modules = path.join(source, '../node_modules');
const PACKED = `pillole-${VERSION}.tgz`;
const QUIET_INSTALL = ['--no-audit', '--no-fund', '--prefer-offline'];
/** Types that the programs of these tests use besides those of the package. */
const TYPES = ['@types', 'undici-types'];

/** The folder of a customer, with the package installed as the README says. */
let folder: string;
let installed: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-package-'));
  await run('npm', ['pack', '--pack-destination', folder], { cwd: source });
  await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
  await run('npm', ['install', ...QUIET_INSTALL, `./${PACKED}`], { cwd: folder });
  installed = path.join(folder, 'node_modules', 'pillole');
  for (const name of TYPES)
    await symlink(path.join(modules, name), path.join(installed, '..', name));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const readJson = async (file: string) => JSON.parse(await readFile(file, 'utf8'));

test('the package contains code, types, license, README and examples, but no tests', async () => {
  const files = await readdir(installed, { recursive: true });
  expect(files).toEqual(
    expect.arrayContaining([
      ...['LICENSE', 'README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts'],
      ...['dist/browser.js', 'dist/cli/main.js', 'examples/tail.js', 'WEBHOOKS.md'],
      ...['examples/verify-webhook.js', 'examples/verify-webhook.py', 'examples/verify-webhook.go'],
    ]),
  );
  expect(files.filter((file) => /\.test\.|testing|(?<!\.d)\.ts$|tsconfig/.test(file))).toEqual([]);
  const license = await readFile(path.join(source, '../LICENSE'), 'utf8');
  expect(await readFile(path.join(installed, 'LICENSE'), 'utf8')).toBe(license);
});

test('the pages advertise no name that a stranger could register', async () => {
  const pages = ['README.md', 'WEBHOOKS.md'].map((name) =>
    readFile(path.join(source, name), 'utf8'),
  );
  const text = (await Promise.all(pages)).join('\n');
  expect(text).toContain(`npm install ~/${PACKED}`);
  expect(text).not.toMatch(/npm (?:i|install) pillole|npx pillole/);
});

test('the README lists the exit codes of the code', async () => {
  const readme = await readFile(path.join(source, 'README.md'), 'utf8');
  const rows = Object.values(EXIT_CODES).map(({ code, meaning }) => `| ${code} | ${meaning} |\n`);
  expect(readme).toContain(rows.join(''));
});

test('the package has the dependency versions that are tested here', async () => {
  const { dependencies, version } = await readJson(path.join(source, 'package.json'));
  const root = await readJson(path.join(source, '../package.json'));
  expect({ ...root.dependencies, ...root.devDependencies }).toMatchObject(dependencies);
  expect(version).toBe(VERSION);
});

test('plain JavaScript can import the package in Node and stream', async () => {
  const program = `
    import { createClient, PilloleError } from 'pillole';
    const client = createClient({ streamUrl: process.argv[2], key: 'k' });
    for await (const item of client.stream({ symbols: '7203.T' })) {
      console.log(item.type, item.cursor);
      break;
    }
    await client.latest().catch((error) => console.log(error instanceof PilloleError, error.code));
  `;
  await writeFile(path.join(folder, 'plain.js'), program);
  const running = run(process.execPath, ['plain.js', fixture.server.streamUrl], { cwd: folder });
  const connection = await fixture.server.connection();
  await sendHandover(connection, 'e1:0-5');
  connection.send(pillFrame(6, null));
  expect((await running).stdout).toBe('pill 0-6\ntrue not_configured\n');
});

test('the command of the package runs', async () => {
  const { bin } = await readJson(path.join(installed, 'package.json'));
  const file = path.join(installed, bin.pillole);
  expect((await run(process.execPath, [file, '--version'])).stdout).toBe(`${VERSION}\n`);
  expect((await readFile(file, 'utf8')).startsWith('#!/usr/bin/env node\n')).toBe(true);
});

test('strict TypeScript accepts the types, and the examples against them', async () => {
  await cp(path.join(installed, 'examples'), path.join(folder, 'examples'), { recursive: true });
  const program = `
    import { createClient, type Pill, type Stream, type Usable } from 'pillole';
    const client = createClient({ apiUrl: 'https://a.example', key: 'k' });
    const stream: Stream = client.stream({ symbols: ['A'], resume: { since: 'x' } });
    stream.on('gap', ({ filled, symbols }) => { const is: boolean = filled; void [is, symbols]; });
    for await (const item of stream) if (item.type === 'pill') { const pill: Pill = item; void pill; }
    const { data } = await client.latest(['A']);
    const of: Pill | undefined = data.A;
    const usable: Usable = await client.usable('A');
    // @ts-expect-error: there is no such event
    stream.on('pills', () => undefined);
    void [of, usable];
  `;
  await writeFile(path.join(folder, 'typed.ts'), program);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    checkJs: true,
    allowJs: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    target: 'ES2023',
    module: 'NodeNext',
    types: ['node'],
    lib: ['ES2023', 'DOM'],
    skipLibCheck: true,
  };
  const include = ['typed.ts', 'examples/*.js'];
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }));
  const tsc = path.join(modules, 'typescript/bin/tsc');
  const { stdout } = await run(process.execPath, [tsc, '-p', folder]).catch((error) => error);
  expect(stdout).toBe('');
});

test('a bundle for browsers needs nothing of Node and can stream', async () => {
  await writeFile(path.join(folder, 'page.js'), `export { createClient } from 'pillole';`);
  const bundle = await rolldown({
    input: path.join(folder, 'page.js'),
    platform: 'browser',
    logLevel: 'silent',
    resolve: { conditionNames: ['browser', 'import'] },
  });
  const { output } = await bundle.generate({ format: 'iife', name: 'pillole' });
  await bundle.close();
  expect(output).toHaveLength(1);
  const [{ code, imports, modules: bundled }] = output;
  expect(imports).toEqual([]);
  expect(Object.keys(bundled).filter((file) => /node_modules\/(?!pillole\/)/.test(file))).toEqual(
    [],
  );
  expect(code).not.toMatch(/\b(node:|require\(|process\.|Buffer\b)/);

  // Only what browsers have; `ws` replaces their WebSocket, without its own extra methods.
  const { WebSocket } = await import('ws');
  class BrowserSocket extends WebSocket {}
  for (const name of ['pause', 'resume', 'terminate']) {
    Object.defineProperty(BrowserSocket.prototype, name, { value: undefined });
  }
  const page = {
    URL,
    URLSearchParams,
    TextEncoder,
    AbortController,
    AbortSignal,
    fetch,
    performance,
    setTimeout,
    clearTimeout,
    queueMicrotask,
    WebSocket: BrowserSocket,
  };
  const { createClient } = vm.runInNewContext(`${code}; pillole`, page);
  const stream = createClient({
    streamUrl: fixture.server.streamUrl,
    ticket: async () => 'pit_1',
  }).stream({ symbols: '7203.T' });
  const items = stream[Symbol.asyncIterator]();
  const connection = await fixture.server.connection();
  expect(connection.url).toBe('/api/stream?ticket=pit_1');
  connection.send({ type: 'welcome', session: 's', tier: 'pro', epoch: 'e1', heartbeat_ms: 5_000 });
  const { id } = await connection.next('subscribe');
  const subscribed = { accepted: ['7203.T'], rejected: [], never_seen: [], recovered: null };
  connection.send(
    { type: 'subscribed', id, ...subscribed, reason: null, position: 'e1:0-5' },
    { type: 'live', id, replayed: 0, position: 'e1:0-5' },
    pillFrame(6, null),
  );
  expect((await items.next()).value).toMatchObject({ type: 'pill', cursor: '0-6' });
  await items.return();
});
