import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { packageRoot } from '../lib/files/package-root.ts';
import { makePython } from '../testing/python.ts';
import { createClient, PilloleError, type StreamOptions } from './index.ts';
import { behaviourDocument } from './testing/behaviour-document.ts';
import { playScript, readScripts, type Script } from './testing/script-player.ts';
import { openScriptedServer, type ScriptedServer } from './testing/scripted-server.ts';

/** What a client made of a script, under the names that the scripts have. */
interface Outcome {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly error: string | null;
  readonly position: string | null | undefined;
}

const FOLDER = path.join(packageRoot, 'sdk/python');
const KEY = 'pil_live_test';
let driver: Driver | undefined;
let server: ScriptedServer | undefined;

type Driver = Awaited<ReturnType<typeof openDriver>>;

/** Starts the Python program that plays one script after the other. */
async function openDriver() {
  const made = await makePython(path.join(FOLDER, 'requirements.txt'));
  if ('reason' in made) throw new Error(`No Python with the client's packages: ${made.reason}`);
  const child = spawn(made.python, [path.join(FOLDER, 'tests/drive.py')], {
    env: { ...process.env, PYTHONPATH: path.join(FOLDER, 'src') },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    async play(settings: object): Promise<Outcome> {
      child.stdin.write(`${JSON.stringify(settings)}\n`);
      const items: Record<string, unknown>[] = [];
      for (;;) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error('The Python program has ended.');
        const line = JSON.parse(value);
        if ('end' in line) return { items, error: line.end, position: line.position };
        items.push(line);
      }
    },
    async close(): Promise<void> {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

afterAll(() => driver?.close());

afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** Items that are awaited; an error ends the stream by itself. */
const countOf = ({ items, error }: Script) => (error === undefined ? items.length : undefined);

async function byTypeScript(script: Script): Promise<Outcome> {
  const { refused_symbols: refusedSymbols, ...options } = script.options;
  const { httpUrl: apiUrl, streamUrl } = server!;
  const stream = createClient({ apiUrl, streamUrl, key: KEY }).stream({
    ...(options as StreamOptions),
    ...(refusedSymbols === undefined ? {} : { refusedSymbols }),
    reconnectMaxMs: 50,
  });
  const items: Record<string, unknown>[] = [];
  try {
    for await (const item of stream) {
      items.push({ ...item, ...('error' in item ? { error: item.error?.code ?? null } : {}) });
      if (items.length === countOf(script)) break;
    }
    return { items, error: null, position: stream.position };
  } catch (error) {
    if (!(error instanceof PilloleError)) throw error;
    return { items, error: error.code, position: error.position };
  }
}

async function byPython(script: Script, face: 'plain' | 'asyncio'): Promise<Outcome> {
  const { httpUrl, streamUrl } = server!;
  driver ??= await openDriver();
  return driver.play({
    ...{ options: script.options, count: countOf(script) ?? null, face },
    urls: { api_url: httpUrl, stream_url: streamUrl },
  });
}

describe.each(readScripts().map((script) => [script.name, script] as const))('%s', (_, script) => {
  test.each([
    ['TypeScript', byTypeScript],
    ['Python', (one: Script) => byPython(one, 'plain')],
    ['Python with asyncio', (one: Script) => byPython(one, 'asyncio')],
  ] as const)('%s', async (_name, client) => {
    server = await openScriptedServer();
    const [outcome] = await Promise.all([client(script), playScript(server, script)]).catch(
      async (error) => {
        // The program still waits for items; the next script has one of its own.
        await driver?.close();
        driver = undefined;
        throw error;
      },
    );
    expect(outcome.error).toBe(script.error ?? null);
    expect(outcome.items).toMatchObject(script.items);
    if (script.position !== undefined) expect(outcome.position).toBe(script.position);
  });
});

test('BEHAVIOUR.md has the rule of each script', async () => {
  await expect(
    behaviourDocument(readScripts()),
    'Write it anew: npx vitest run sdk/behaviour.test.ts --update',
  ).toMatchFileSnapshot('BEHAVIOUR.md');
});
