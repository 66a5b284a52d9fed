import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EVENT_CATALOGUE } from '../../domain/webhooks/events/event-catalogue.ts';
import { waitFor } from '../../testing/wait.ts';
import { distFolder, endRuns, type Run, runNode, runProgram } from '../testing/run-program.ts';
import {
  OTHER_SECRET,
  SECRET,
  type SignOptions,
  signedHeaders,
} from '../testing/signed-webhooks.ts';

const examples = import.meta.dirname;
let folder: string;

/** The examples as a customer has them, next to an installed package. */
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-webhooks-'));
  const installed = path.join(folder, 'node_modules', 'pillole');
  await mkdir(installed, { recursive: true });
  await copyFile(path.join(examples, '../package.json'), `${installed}/package.json`);
  await symlink(distFolder, path.join(installed, 'dist'));
});
afterEach(endRuns);
afterAll(() => rm(folder, { recursive: true, force: true }));

const runs = (command: string, ...args: readonly string[]) =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;

interface Receiver {
  readonly name: string;
  /** Why the language is not available; undefined if it is. */
  readonly missing?: string | undefined;
  start(env: Readonly<Record<string, string>>): Promise<Run>;
}

async function startNode(name: string, env: Readonly<Record<string, string>>): Promise<Run> {
  const file = path.join(folder, name.replace('.js', '.mjs'));
  await copyFile(path.join(examples, name), file);
  return runNode(file, [], { cwd: folder, env });
}

const RECEIVERS: readonly Receiver[] = [
  { name: 'receive-webhook.js', start: (env) => startNode('receive-webhook.js', env) },
  { name: 'verify-webhook.js', start: (env) => startNode('verify-webhook.js', env) },
  {
    name: 'verify-webhook.py',
    missing: runs('python3', '--version') ? undefined : 'python3 is not installed',
    start: async (env) =>
      runProgram('python3', [path.join(examples, 'verify-webhook.py')], { env }),
  },
  {
    name: 'verify-webhook.go',
    missing: runs('go', 'version') ? undefined : 'go is not installed',
    start: async (env) => {
      const built = path.join(folder, 'verify-webhook');
      const source = path.join(examples, 'verify-webhook.go');
      const { status, stderr } = spawnSync('go', ['build', '-o', built, source], {
        env: { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local' },
        encoding: 'utf8',
      });
      if (status !== 0) throw new Error(stderr);
      return runProgram(built, [], { env });
    },
  },
];

describe.each(RECEIVERS)('$name', ({ missing, start }) => {
  const because = missing === undefined ? '' : ` (skipped: ${missing})`;

  test.skipIf(missing !== undefined)(
    `accepts what the reference library signs, and nothing else${because}`,
    async () => {
      const run = await start({ PILLOLE_WEBHOOK_SECRET: `${OTHER_SECRET} ${SECRET}`, PORT: '0' });
      await waitFor('the address', () => run.stdout().includes('\n'));
      const url = run.stdout().split('\n')[0]!;
      const post = async (body: string, headers: Record<string, string>) => {
        const answer = await fetch(url, { method: 'POST', body, headers });
        return { status: answer.status, text: await answer.text() };
      };
      const send = (body: string, options?: SignOptions) =>
        post(body, signedHeaders(body, options));

      const bodies = Object.values(EVENT_CATALOGUE).map(({ example }) => JSON.stringify(example));
      const { challenge } = EVENT_CATALOGUE['endpoint.test'].example.data;
      for (const [at, body] of bodies.entries()) {
        const text = body.includes('"endpoint.test"') ? challenge : '';
        expect(await send(body, { id: `msg_${at}` })).toEqual({ status: 200, text });
      }
      const body = JSON.stringify({ type: 'later.one', timestamp: 't', data: { text: 'é 株 🙂' } });
      for (const secrets of [[SECRET], [OTHER_SECRET], [OTHER_SECRET, SECRET]]) {
        expect((await send(body, { id: `msg_${secrets.length}`, secrets })).status).toBe(200);
      }
      // Each delivery is printed.
      for (const type of Object.keys(EVENT_CATALOGUE)) {
        if (type === 'pill.published') continue;
        await waitFor(type, () => run.stdout().includes(` ${type}\n`) || run.stdout());
      }

      const stranger = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
      const near = (seconds: number) => new Date(Date.now() + seconds * 1_000);
      expect((await send(body, { at: near(-280) })).status).toBe(200);
      expect((await send(body, { at: near(280) })).status).toBe(200);
      const refused: [string, Record<string, string>][] = [
        [body, signedHeaders(body, { secrets: [stranger] })],
        [body, signedHeaders(body, { at: near(-320) })],
        [body, signedHeaders(body, { at: near(320) })],
        [`${body} `, signedHeaders(body)],
        [body.replace('é', 'e'), signedHeaders(body)],
        [body, { ...signedHeaders(body), 'webhook-id': 'msg_another' }],
        [body, {}],
      ];
      for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
        refused.push([body, { ...signedHeaders(body), [name]: '' }]);
        refused.push([body, { ...signedHeaders(body), [name]: 'v1, \u00e9' }]);
      }
      refused.push([body, { ...signedHeaders(body), 'webhook-signature': 'v1,' }]);
      for (const [sent, headers] of refused) {
        expect(await post(sent, headers), JSON.stringify(headers)).toMatchObject({
          status: 401,
          text: expect.stringMatching(/\w+/),
        });
      }
    },
  );

  test.skipIf(missing !== undefined)(`requires a secret${because}`, async () => {
    const run = await start({ PORT: '0' });
    expect(await run.exited).not.toBe(0);
    expect(run.stderr()).toContain('PILLOLE_WEBHOOK_SECRET');
  });
});

test('receive-webhook.js handles a repeated delivery once', async () => {
  const run = await startNode('receive-webhook.js', { PILLOLE_WEBHOOK_SECRET: SECRET, PORT: '0' });
  await waitFor('the address', () => run.stdout().includes('\n'));
  const body = JSON.stringify(EVENT_CATALOGUE['pill.published'].example);
  for (const id of ['msg_1', 'msg_1', 'msg_2']) {
    const headers = signedHeaders(body, { id });
    const answer = await fetch(run.stdout().split('\n')[0]!, { method: 'POST', body, headers });
    expect(answer.status).toBe(200);
  }
  await waitFor('the second delivery to be printed', () => run.stdout().includes('msg_2'));
  expect(run.stdout().split('\n').slice(1, -1)).toEqual([
    'msg_1 7203.T 3-132',
    'msg_2 7203.T 3-132',
  ]);
});
