import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import vm from 'node:vm';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../testing/launch-chromium.ts';
import { EXIT_CODES } from './cli/exit-codes.ts';
import SETTINGS from './packages.json' with { type: 'json' };
import { pillFrame, sendHandover } from './testing/scripted-frames.ts';
import type { ScriptedConnection } from './testing/scripted-server.ts';
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

test('the linters of packages find nothing', async () => {
  const file = path.join(folder, PACKED);
  const linters = [
    ['publint/src/cli.js', 'run', file, '--strict'],
    // CommonJS reads a package of modules by a dynamic import.
    ['@arethetypeswrong/cli/dist/index.js', file, '--profile', 'esm-only'],
  ];
  for (const [linter, ...args] of linters) {
    const program = path.join(modules, linter!);
    const outcome = await run(process.execPath, [program, ...args]).catch((error) => error);
    expect(outcome.code, `${outcome.stdout}${outcome.stderr}`).toBeUndefined();
  }
});

test('it asks for provenance, which needs the address of the source', async () => {
  const { repository, publishConfig, exports } = await readJson(
    path.join(installed, 'package.json'),
  );
  expect(publishConfig).toEqual({ access: 'public', provenance: true });
  expect(repository).toMatchObject({ url: `git+${SETTINGS.repository}`, directory: 'sdk' });
  expect(Object.keys(exports['.'])).toEqual(['types', 'browser', 'default']);
});

test('names, version and addresses are settings in one place', async () => {
  const copy = path.join(folder, 'renamed');
  for (const name of [
    'package.json',
    'version.ts',
    'README.md',
    'WEBHOOKS.md',
    'examples',
    'python',
  ])
    await cp(path.join(source, name), path.join(copy, 'sdk', name), { recursive: true });
  const settings = { npm: '@desk/pills', pypi: 'desk-pills', version: '9.8.7' };
  const addresses = { homepage: 'https://desk.example/', repository: 'https://desk.example/x.git' };
  await writeFile(
    path.join(copy, 'sdk/packages.json'),
    JSON.stringify({ ...settings, ...addresses }),
  );
  const program = path.join(source, '../deploy/package-settings.mjs');
  const compared = await run(process.execPath, [program, copy]).catch((error) => error);
  expect(compared.code).toBe(1);
  await run(process.execPath, [program, copy, '--write']);
  expect((await run(process.execPath, [program, copy])).stderr).toBe('');
  const dry = ['pack', '--dry-run', '--ignore-scripts', '--json'];
  const { stdout } = await run('npm', dry, { cwd: path.join(copy, 'sdk') });
  expect(stdout).toContain('desk-pills-9.8.7.tgz');
  const project = await readFile(path.join(copy, 'sdk/python/pyproject.toml'), 'utf8');
  expect(project).toMatch(/^name = "desk-pills"\nversion = "9\.8\.7"$/m);
  const examples = await readdir(path.join(copy, 'sdk/examples'));
  const files = examples.filter((name) => /\.js$/.test(name)).map((name) => `examples/${name}`);
  for (const name of [
    'README.md',
    'WEBHOOKS.md',
    'version.ts',
    'python/src/pillole/__init__.py',
    ...files,
  ]) {
    const text = await readFile(path.join(copy, 'sdk', name), 'utf8');
    expect(text).not.toMatch(/from 'pillole'|pillole-0|\b0\.1\.0\b/);
  }
});

test('a page of Chromium can import the browser build as it is, and stream', async () => {
  const files = await readdir(path.join(installed, 'dist'), { recursive: true });
  const served = new Map(files.map((name) => [`/${name}`, path.join(installed, 'dist', name)]));
  const pages = createServer(async (request, response) => {
    const file = served.get(request.url!);
    response.setHeader('content-type', file === undefined ? 'text/html' : 'text/javascript');
    response.end(file === undefined ? '<!doctype html>' : await readFile(file));
  });
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
    // As text, since the test's own bundler would replace the import.
    const program = `(async () => {
      const { createClient } = await import('/browser.js');
      const streamUrl = '${fixture.server.streamUrl}';
      const client = createClient({ streamUrl, ticket: async () => 'pit_1' });
      for await (const item of client.stream({ symbols: '7203.T' }))
        if (item.type === 'pill') return item.cursor;
    })()`;
    const serve = async () => {
      const connection = await fixture.server.connection();
      await handOver(connection);
      connection.send(pillFrame(6, null));
    };
    expect((await Promise.all([page.evaluate(program), serve()]))[0]).toBe('0-6');
  } finally {
    await browser.close();
    pages.closeAllConnections();
    pages.close();
  }
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
  await handOver(connection);
  connection.send(pillFrame(6, null));
  expect((await items.next()).value).toMatchObject({ type: 'pill', cursor: '0-6' });
  await items.return();
});

/** Answers the frames of a client that has a ticket, until the stream is live. */
async function handOver(connection: ScriptedConnection): Promise<void> {
  connection.send({ type: 'welcome', session: 's', tier: 'pro', epoch: 'e1', heartbeat_ms: 5_000 });
  const { id } = await connection.next('subscribe');
  const subscribed = { accepted: ['7203.T'], rejected: [], never_seen: [], recovered: null };
  connection.send(
    { type: 'subscribed', id, ...subscribed, reason: null, position: 'e1:0-5' },
    { type: 'live', id, replayed: 0, position: 'e1:0-5' },
  );
}
