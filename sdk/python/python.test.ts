import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
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
import { makePython } from '../../testing/python.ts';
import { waitFor } from '../../testing/wait.ts';

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
});

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
  await runModule(['mypy', '--cache-dir', path.join(folder, 'mypy')]);
  await runModule(['pytest', '-q', '-p', 'no:cacheprovider']);
});

/** Python blocks of the client's README, in order. */
async function readmeBlocks(): Promise<readonly string[]> {
  const text = await readFile(path.join(FOLDER, 'README.md'), 'utf8');
  return [...text.matchAll(/```python\n(.*?)```/gs)].map(([, code]) => code!);
}

test('the wheel, installed from its file, does what README shows; a kill at any moment loses and doubles nothing', async () => {
  const dist = path.join(folder, 'dist');
  await runModule(['build', '--no-isolation', '--outdir', dist, '.']);
  const files = await readdir(dist);
  expect(files.sort()).toEqual(['pillole-0.1.0-py3-none-any.whl', 'pillole-0.1.0.tar.gz']);
  const site = path.join(folder, 'site');
  const wheel = path.join(dist, files[0]!);
  await runModule(['pip', 'install', '--quiet', '--no-deps', '--target', site, wheel]);
  expect(await readdir(path.join(site, 'pillole'))).toContain('py.typed');

  const { api, poster, key, streamUrl } = await startPlatform();
  try {
    const env = {
      ...{ PATH: process.env.PATH, PYTHONPATH: site, PYTHONDONTWRITEBYTECODE: '1' },
      ...{ PILLOLE_KEY: key, PILLOLE_API_URL: api.base, PILLOLE_STREAM_URL: streamUrl },
    };
    const [first, resume] = await readmeBlocks();
    const { program, output } = startReadme(first!, env);
    await waitFor('the newest pill', () => output.text.startsWith('0.1\n'));
    await waitFor('the pill of the stream', async () => {
      // A pill of before the stream is live comes in its snapshot, which the program leaves out.
      await poster.post(makePill({ symbol: '0700.HK', gross_spread_percent: 0.7 }));
      return output.text.includes('0700.HK 0.7') || output.text;
    });
    program.kill('SIGKILL');
    await killAndResume(resume!, env, poster);
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
  return { api, poster, key, streamUrl };
}

/** Starts a block of README as a program. */
function startReadme(code: string, env: NodeJS.ProcessEnv) {
  const output = { text: '' };
  const program = spawn(python, ['-u', '-c', code], { cwd: folder, env });
  for (const pipe of [program.stdout, program.stderr]) {
    pipe.on('data', (data) => {
      output.text += data;
    });
  }
  return { program, output };
}

/** Posts pills while the program is killed again and again; its file must have each pill once. */
async function killAndResume(code: string, env: NodeJS.ProcessEnv, poster: Poster): Promise<void> {
  const file = path.join(folder, 'pills.txt');
  const lines = async () => {
    const text = await readFile(file, 'utf8').catch(() => '');
    return text.split('\n').filter((line) => line.includes(' KILL.T '));
  };
  const sent: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    const { program, output } = startReadme(code, env);
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
