import { copyFile, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import { distFolder, endRuns, runNode } from '../testing/run-program.ts';
import {
  heartbeat,
  pillAt,
  pillFrame,
  sendHandover,
  snapshotPill,
} from '../testing/scripted-frames.ts';
import { useScriptedServer } from '../testing/use-scripted-server.ts';

const fixture = useScriptedServer();
let folder: string;

/** The examples as a customer has them, next to an installed package. */
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
  const { httpUrl: PILLOLE_API_URL, streamUrl: PILLOLE_STREAM_URL } = fixture.server;
  const env = { PILLOLE_API_URL, PILLOLE_STREAM_URL, PILLOLE_KEY: 'pil_live_key' };
  return runNode(file, args, { cwd: folder, env });
}

const linesOf = (text: string) => text.trimEnd().split('\n');

test('tail: snapshot, pills, a gap and a reconnect; Ctrl-C ends the program', async () => {
  const program = await run('tail', '7203.T');
  const first = await fixture.server.connection();
  await sendHandover(first, 'e1:0-5', { snapshot: [snapshotPill(5)] });
  first.send(pillFrame(6, 5), pillFrame(9, 8));
  await waitFor('the gap', () => program.stdout().includes('0-9'));
  first.cut();
  const second = await fixture.server.connection();
  const between = [pillFrame(10, 9, { replayed: true })];
  await sendHandover(second, 'e1:0-10', { subscribed: { recovered: true }, between });
  await waitFor('the replay', () => program.stdout().includes('0-10'));
  program.child.kill('SIGINT');
  expect(await program.exited).toBe(0);
  expect(linesOf(program.stdout())).toEqual([
    ...['begins 7203.T 0-5', 'now 7203.T 0-6', 'missing 7203.T prev_broken', 'now 7203.T 0-9'],
    'past 7203.T 0-10',
  ]);
  expect(program.stderr()).toMatch(/1006.* Next attempt in \d+ ms\./);
});

test('tail: a wrong key ends the program with its code', async () => {
  const program = await run('tail');
  const connection = await fixture.server.connection();
  const message = 'The key is not accepted.';
  connection.send({ type: 'error', code: 'key_invalid', message, fatal: true, close: 4501 });
  connection.close(4501);
  expect(await program.exited).toBe(1);
  expect(program.stderr()).toBe(`key_invalid: ${message}\n`);
});

test('events: the program distinguishes quiet from dead, and live from not live', async () => {
  const program = await run('events', '7203.T');
  const welcome = { heartbeat_ms: 1_000 };
  const first = await fixture.server.connection();
  const asked = await sendHandover(first, 'e1:0-5', { snapshot: [snapshotPill(5)], welcome });
  expect(asked).toMatchObject({ mode: 'latest' });
  first.send(heartbeat('e1:0-5', 'silent')); // and then nothing
  const second = await fixture.server.connection();
  await sendHandover(second, 'e1:0-6', { subscribed: { recovered: true } });
  await waitFor('live again', () => program.stdout().includes('resumed'));
  program.child.kill('SIGINT');
  expect(await program.exited).toBe(0);
  expect(linesOf(program.stdout())).toEqual([
    'live at e1:0-5, 1 symbols known',
    'quiet, but connected: *, generator_silent',
    expect.stringMatching(/^dead: no frame for \d+ ms$/),
    'not live: attempt 1',
    'live at e1:0-6, 1 symbols known, resumed',
    'closed at e1:0-6, live before: true',
  ]);
});

test('latest-usable: acts once on a verified pill, otherwise only shows it with the reason', async () => {
  const newest = pillAt(5, 4);
  const verified = {
    subject: { symbol: '7203.T' },
    checked_at: '2026-11-20T01:02:03Z',
    verdict: 'verified',
    usable: true,
    reasons: [],
    valid_until: '2026-11-20T01:02:08Z',
    pill: newest,
  };
  const old = { verdict: 'stale', usable: false, reasons: [{ code: 'pill_too_old' }] };
  const answers: object[] = [verified, verified, { ...verified, ...old }];
  fixture.server.answer((url) =>
    url.pathname === '/api/market/verify'
      ? { body: answers.shift() }
      : { body: { data: newest, position: 'e1:0-5' } },
  );
  const program = await run('latest-usable', '7203.T', '3', '10');
  expect(await program.exited).toBe(0);
  expect(linesOf(program.stdout())).toEqual([
    expect.stringMatching(/^act on 7203\.T 0\.125, within \d+ ms$/),
    'do not act on 7203.T 0.125: pill_too_old',
  ]);
});

test('latest-usable: without verify it does not act', async () => {
  const body = { data: pillAt(5, 4), position: 'e1:0-5' };
  const missing = { type: 'x', title: 'No such address', status: 404, code: 'not_found' };
  fixture.server.answer((url) =>
    url.pathname === '/api/pills/latest' ? { body } : { status: 404, body: missing },
  );
  const program = await run('latest-usable', '7203.T', '1');
  expect(await program.exited).toBe(0);
  expect(program.stdout()).toBe('do not act on 7203.T 0.125: verify_unavailable\n');
});

test('resume: killed at any moment, the file has each pill once', async () => {
  const first = await run('resume', 'pills.ndjson', '7203.T');
  const one = await fixture.server.connection();
  expect((await sendHandover(one, 'e1:0-5')).resume).toBeUndefined();
  one.send(pillFrame(6, null), pillFrame(7, null));
  const file = path.join(folder, 'pills.ndjson');
  const content = () => readFile(file, 'utf8').catch(() => '');
  await waitFor('both lines to be written', async () => (await content()).split('\n').length > 2);
  first.child.kill('SIGKILL');
  await first.exited;
  // As if killed in the middle of a line.
  const { appendFile } = await import('node:fs/promises');
  await appendFile(file, '{"position":"e1:0-8","epo');

  const second = await run('resume', 'pills.ndjson', '7203.T');
  const two = await fixture.server.connection();
  const between = [7, 8].map((offset) => pillFrame(offset, null, { replayed: true }));
  const asked = await sendHandover(two, 'e1:0-8', { subscribed: { recovered: true }, between });
  expect(asked.resume).toBe('e1:0-7');
  two.send(pillFrame(9, null, { backfill: true }));
  await waitFor('the last', async () => (await content()).includes('0-9'));
  second.child.kill('SIGINT');
  expect(await second.exited).toBe(0);
  const kept = linesOf(await content()).map((line) => JSON.parse(line));
  expect(kept.map(({ cursor }) => cursor)).toEqual(['0-6', '0-7', '0-8', '0-9']);
  expect(kept.map(({ position }) => position)).toEqual(['e1:0-6', 'e1:0-7', 'e1:0-8', 'e1:0-9']);
});
