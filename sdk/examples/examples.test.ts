import { copyFile, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { waitFor } from '../../lib/testing/wait.ts';
import { handOver, heartbeat, pill, pillAt, shown } from '../testing/frames.ts';
import { usePlayServer } from '../testing/play.ts';
import { distFolder, endRuns, runNode } from '../testing/run.ts';

const play = usePlayServer();
let folder: string;

/** The examples as a customer has them: beside an installed package. */
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-examples-'));
  const installed = path.join(folder, 'node_modules', 'pillole');
  await mkdir(installed, { recursive: true });
  await copyFile(path.join(import.meta.dirname, '../package.json'), `${installed}/package.json`);
  await symlink(distFolder, path.join(installed, 'dist'));
});
afterEach(endRuns);
afterAll(() => rm(folder, { recursive: true, force: true }));

async function run(name: string, ...args: readonly string[]) {
  const file = path.join(folder, `${name}.mjs`);
  await copyFile(path.join(import.meta.dirname, `${name}.js`), file);
  const { httpUrl: PILLOLE_API_URL, streamUrl: PILLOLE_STREAM_URL } = play.server;
  const env = { PILLOLE_API_URL, PILLOLE_STREAM_URL, PILLOLE_KEY: 'pil_live_key' };
  return runNode(file, args, { cwd: folder, env });
}

const linesOf = (text: string) => text.trimEnd().split('\n');

test('tail: snapshot, pills, a gap, a reconnect; Ctrl-C ends it', async () => {
  const program = await run('tail', '7203.T');
  const first = await play.server.connection();
  await handOver(first, 'e1:0-5', { snapshot: [shown(5)] });
  first.send(pill(6, 5), pill(9, 8));
  await waitFor('the gap', () => program.stdout().includes('0-9'));
  first.cut();
  const second = await play.server.connection();
  const between = [pill(10, 9, { replayed: true })];
  await handOver(second, 'e1:0-10', { subscribed: { recovered: true }, between });
  await waitFor('the replay', () => program.stdout().includes('0-10'));
  program.child.kill('SIGINT');
  expect(await program.exited).toBe(0);
  expect(linesOf(program.stdout())).toEqual([
    ...['begins 7203.T 0-5', 'now 7203.T 0-6', 'missing 7203.T prev_broken', 'now 7203.T 0-9'],
    'past 7203.T 0-10',
  ]);
  expect(program.stderr()).toMatch(/1006.* Again in \d+ ms\./);
});

test('tail: a wrong key ends it with the code', async () => {
  const program = await run('tail');
  const connection = await play.server.connection();
  const message = 'The key is not accepted.';
  connection.send({ type: 'error', code: 'key_invalid', message, fatal: true, close: 4501 });
  connection.close(4501);
  expect(await program.exited).toBe(1);
  expect(program.stderr()).toBe(`key_invalid: ${message}\n`);
});

test('events: quiet is told apart from dead, and a picture that is not live from one that is', async () => {
  const program = await run('events', '7203.T');
  const welcome = { heartbeat_ms: 100 };
  const first = await play.server.connection();
  const asked = await handOver(first, 'e1:0-5', { snapshot: [shown(5)], welcome });
  expect(asked).toMatchObject({ mode: 'latest' });
  first.send(heartbeat('e1:0-5', 'silent')); // and then not a word
  const second = await play.server.connection();
  await handOver(second, 'e1:0-6', { subscribed: { recovered: true } });
  await waitFor('live again', () => program.stdout().includes('resumed'));
  program.child.kill('SIGINT');
  expect(await program.exited).toBe(0);
  expect(linesOf(program.stdout())).toEqual([
    'live at e1:0-5, 1 symbols known',
    'quiet, and alive: *, generator_silent',
    expect.stringMatching(/^dead: nothing in \d+ ms$/),
    'not live: attempt 1',
    'live at e1:0-6, 1 symbols known, resumed',
    'closed at e1:0-6, live before: true',
  ]);
});

test('latest-usable: acts once on a verified pill, else it only looks, with the reason', async () => {
  const newest = pillAt(5, 4);
  const verified = {
    ...{ subject: { symbol: '7203.T' }, checked_at: '2026-11-20T01:02:03Z', verdict: 'verified' },
    ...{ usable: true, reasons: [], valid_until: '2026-11-20T01:02:08Z', pill: newest },
  };
  const old = { verdict: 'stale', usable: false, reasons: [{ code: 'pill_too_old' }] };
  const answers: object[] = [verified, verified, { ...verified, ...old }];
  play.server.answer((url) =>
    url.pathname === '/api/market/verify'
      ? { body: answers.shift() }
      : { body: { data: newest, position: 'e1:0-5' } },
  );
  const program = await run('latest-usable', '7203.T', '3', '10');
  expect(await program.exited).toBe(0);
  expect(linesOf(program.stdout())).toEqual([
    expect.stringMatching(/^act on 7203\.T 0\.125, within \d+ ms$/),
    'only look at 7203.T 0.125: pill_too_old',
  ]);
});

test('latest-usable: where there is no verify, nothing is acted on', async () => {
  const body = { data: pillAt(5, 4), position: 'e1:0-5' };
  const missing = { type: 'x', title: 'No such address', status: 404, code: 'not_found' };
  play.server.answer((url) =>
    url.pathname === '/api/pills/latest' ? { body } : { status: 404, body: missing },
  );
  const program = await run('latest-usable', '7203.T', '1');
  expect(await program.exited).toBe(0);
  expect(program.stdout()).toBe('only look at 7203.T 0.125: verify_unavailable\n');
});

test('resume: killed at any moment, each pill is in the file once', async () => {
  const first = await run('resume', 'pills.ndjson', '7203.T');
  const one = await play.server.connection();
  expect((await handOver(one, 'e1:0-5')).resume).toBeUndefined();
  one.send(pill(6, null), pill(7, null));
  const file = path.join(folder, 'pills.ndjson');
  const content = () => readFile(file, 'utf8').catch(() => '');
  await waitFor('both', async () => (await content()).split('\n').length > 2);
  first.child.kill('SIGKILL');
  await first.exited;
  // Killed in the middle of a line.
  const { appendFile } = await import('node:fs/promises');
  await appendFile(file, '{"position":"e1:0-8","epo');

  const second = await run('resume', 'pills.ndjson', '7203.T');
  const two = await play.server.connection();
  const between = [7, 8].map((offset) => pill(offset, null, { replayed: true }));
  const asked = await handOver(two, 'e1:0-8', { subscribed: { recovered: true }, between });
  expect(asked.resume).toBe('e1:0-7');
  two.send(pill(9, null, { backfill: true }));
  await waitFor('the last', async () => (await content()).includes('0-9'));
  second.child.kill('SIGINT');
  expect(await second.exited).toBe(0);
  const kept = linesOf(await content()).map((line) => JSON.parse(line));
  expect(kept.map(({ cursor }) => cursor)).toEqual(['0-6', '0-7', '0-8', '0-9']);
  expect(kept.map(({ position }) => position)).toEqual(['e1:0-6', 'e1:0-7', 'e1:0-8', 'e1:0-9']);
});
