import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AccountApi, openAccountApi } from '../../gateway/api/testing/account-api.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import { startIngest } from '../../testing/ingest-process.ts';
import { makePill } from '../../testing/pills.ts';
import { getPort } from '../../testing/ports.ts';
import { createPoster, type Poster } from '../../testing/poster.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { MYPY_CACHE, makePython } from '../../testing/python.ts';
import { waitFor } from '../../testing/wait.ts';
import SETTINGS from '../packages.json' with { type: 'json' };

const FOLDER = path.join(packageRoot, 'sdk/python');
const run = promisify(execFile);
const running: TestProcess[] = [];
let python: string;
let folder: string;

beforeAll(async () => {
  const made = await makePython(path.join(FOLDER, 'requirements.txt'));
  if ('reason' in made) throw new Error(`No Python with the client's packages: ${made.reason}`);
  ({ python } = made);
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-python-'));
  // The first run installs all packages, which several files wait for on a busy machine.
}, 900_000);

afterAll(async () => {
  await Promise.all(running.map((process) => process.stop()));
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Runs a module of the pinned Python in the client's folder. @throws with its output */
async function runModule(args: readonly string[]): Promise<void> {
  await run(python, ['-m', ...args], { cwd: FOLDER, timeout: 240_000 }).catch((error) => {
    throw new Error(`${args[0]}:\n${error.stdout}\n${error.stderr}`);
  });
}

test('types, style and unit tests', async () => {
  await runModule(['ruff', 'check', '--no-cache', '.']);
  await runModule(['ruff', 'format', '--no-cache', '--check', '.']);
  await runModule(['mypy', '--cache-dir', MYPY_CACHE]);
  await runModule(['pytest', '-q', '-p', 'no:cacheprovider']);
});

/** Python blocks of the client's README, in order. */
async function readmeBlocks(): Promise<readonly string[]> {
  const text = await readFile(path.join(FOLDER, 'README.md'), 'utf8');
  return [...text.matchAll(/```python\n(.*?)```/gs)].map(([, code]) => code!);
}

/**
 * Builds both files, and installs the wheel with what it asks for into an empty project: a Python of
 * its own. The versions are those that are tested here.
 * @returns its interpreter
 */
async function installFromFile(): Promise<string> {
  const dist = path.join(folder, 'dist');
  await runModule(['build', '--no-isolation', '--outdir', dist, '.']);
  const { pypi, version } = SETTINGS;
  const stem = `${pypi.replaceAll('-', '_')}-${version}`;
  const [wheel, source] = [`${stem}-py3-none-any.whl`, `${stem}.tar.gz`];
  expect((await readdir(dist)).sort()).toEqual([wheel, source].sort());
  const files = [wheel, source].map((name) => path.join(dist, name));
  await runModule(['twine', 'check', '--strict', ...files]);
  await runModule(['check_wheel_contents', files[0]!]);
  const pins = await readFile(path.join(FOLDER, 'requirements.txt'), 'utf8');
  const constraints = path.join(folder, 'constraints.txt');
  await writeFile(constraints, pins.match(/^[^\s#][^\\\n]*/gm)!.join('\n'));
  const project = path.join(folder, 'project');
  await run('python3', ['-m', 'venv', project]);
  const own = path.join(project, 'bin', 'python');
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-compile', '--constraint', constraints];
  await run(own, [...pip, files[0]!], { cwd: folder, timeout: 240_000 });
  const { stdout } = await run(own, ['-c', PROBE], { cwd: folder });
  expect(stdout).toBe(`${version} True\n`);
  return own;
}

/** The version by the package's metadata, and whether its types and license are there. */
const PROBE = `
import importlib.metadata as m, pathlib, pillole
files = {str(file) for file in m.files("${SETTINGS.pypi}")}
typed = pathlib.Path(pillole.__file__).with_name("py.typed").exists()
assert m.version("${SETTINGS.pypi}") == pillole.__version__
print(pillole.__version__, typed and any(name.endswith("LICENSE") for name in files))
`;

test('the page claims no publication, and the license is that of the repository', async () => {
  const text = await readFile(path.join(FOLDER, 'README.md'), 'utf8');
  expect(text).toContain('The package is not published');
  expect(text).not.toMatch(/pip3? install (?!'?\.)/);
  const license = await readFile(path.join(packageRoot, 'LICENSE'), 'utf8');
  expect(await readFile(path.join(FOLDER, 'LICENSE'), 'utf8')).toBe(license);
});

test('the wheel, installed from its file, does what README shows; a kill at any moment loses and doubles nothing', async () => {
  const project = await installFromFile();
  const { api, poster, key } = await startPlatform();
  try {
    const env = { PATH: process.env.PATH, PILLOLE_KEY: key, PILLOLE_API_URL: api.base };
    const [first, resume] = await readmeBlocks();
    const { program, output } = startPython(project, ['-c', first!], env);
    await waitFor('the newest pill', () => output.text.startsWith('0.1\n'));
    await waitFor('the pill of the stream', async () => {
      // A pill of before the stream is live comes in its snapshot, which the program leaves out.
      await poster.post(makePill({ symbol: '0700.HK', gross_spread_percent: 0.7 }));
      return output.text.includes('0700.HK 0.7') || output.text;
    });
    program.kill('SIGKILL');
    await killAndResume(() => startPython(project, ['-c', resume!], env), poster);
    await tailUntilInterrupted(project, env, poster);
  } finally {
    await poster.close();
    await api.close();
  }
});

async function startPlatform() {
  const port = String(await getPort());
  const streamUrl = `ws://127.0.0.1:${port}`;
  const api: AccountApi = await openAccountApi({ STREAM_URL: streamUrl });
  const ingest = await startIngest(api.namespace);
  running.push(ingest.process);
  for (const [program, args] of [
    ['gateway/stream/main.js', []],
    ['pipelines/main.js', ['latest']],
    ['pipelines/main.js', ['analytics']],
  ] as const) {
    const env = { ...api.namespace.env, STREAM_PORT: port };
    running.push(await startProcess(program, [...args], env));
  }
  await Promise.all(running.map((process) => process.ready()));
  const poster = createPoster(ingest.url);
  await poster.post(makePill({ symbol: '7203.T', gross_spread_percent: 0.1 }));
  const customer = await api.customer('quant', 'pro');
  const made = await customer.send('POST', '/api/keys', { name: 'py', scopes: ['read', 'stream'] });
  const { key } = made.body;
  await waitFor('the first pill to be readable', async () => {
    const headers = { 'x-api-key': key };
    return (await fetch(`${api.base}/api/pills/latest?symbol=7203.T`, { headers })).status === 200;
  });
  return { api, poster, key };
}

type Program = ReturnType<typeof startPython>;

function startPython(interpreter: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const output = { text: '' };
  const program = spawn(interpreter, ['-u', ...args], { cwd: folder, env });
  for (const pipe of [program.stdout, program.stderr]) {
    pipe.on('data', (data) => {
      output.text += data;
    });
  }
  return { program, output };
}

/** The command line follows a symbol until SIGTERM, and says where to resume. */
async function tailUntilInterrupted(interpreter: string, env: NodeJS.ProcessEnv, poster: Poster) {
  const args = ['-m', 'pillole', 'tail', 'TAIL.T', '--position-file', 'tail-position'];
  const { program, output } = startPython(interpreter, args, env);
  const exited = once(program, 'exit');
  await waitFor('a pill of tail', async () => {
    await poster.post(makePill({ symbol: 'TAIL.T' }));
    return /^\{"type":"pill",.*"symbol":"TAIL\.T".*\}$/m.test(output.text) || output.text;
  });
  program.kill('SIGTERM');
  expect(await exited).toEqual([130, null]);
  const [, position] = /^position: (\S+)$/m.exec(output.text)!;
  const saved = JSON.parse(
    (await readFile(path.join(folder, 'tail-position'), 'utf8')).split('\n')[0]!,
  );
  expect(saved.position).toBe(position);
}

/** Posts pills while the program is killed again and again; its file must have each pill once. */
async function killAndResume(start: () => Program, poster: Poster): Promise<void> {
  const file = path.join(folder, 'pills.txt');
  const lines = async () => {
    const text = await readFile(file, 'utf8').catch(() => '');
    return text.split('\n').filter((line) => line.includes(' KILL.T '));
  };
  const sent: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    const { program, output } = start();
    const before = sent.length;
    // A first position is known once the stream is live; pills before it are in the snapshot.
    await waitFor('a position', async () => {
      const saved = await readFile(path.join(folder, 'position'), 'utf8').catch(() => '');
      return saved !== '' || output.text;
    });
    for (let number = 0; number < 40; number += 1) {
      sent.push(sent.length + 1);
      await poster.post(makePill({ symbol: 'KILL.T', gross_spread_percent: sent.length }));
    }
    const wanted = round === 3 ? sent.length : before + 5 + round;
    await waitFor('some pills to be written', async () => {
      const written = (await lines()).length;
      return written >= wanted || `${written} ${output.text}`;
    });
    program.kill('SIGKILL');
    await once(program, 'exit');
  }
  const spreads = (await lines()).map((line) => Number(line.split(' ')[2]));
  expect(spreads).toEqual(sent);
}
