import { afterEach, describe, expect, test } from 'vitest';
import { waitFor } from '../../lib/testing/wait.ts';
import { handOver, heartbeat, pill, shown } from '../testing/frames.ts';
import { usePlayServer } from '../testing/play.ts';
import { endRuns, runCli } from '../testing/run.ts';

const play = usePlayServer();
afterEach(endRuns);

const PAST = { timestamp: '2020-01-01T00:00:00.000000Z' };

/** Starts `tail` against the play server. */
const tail = (...args: readonly string[]) =>
  runCli(['tail', ...args], {
    env: {
      PILLOLE_API_URL: play.server.httpUrl,
      PILLOLE_STREAM_URL: play.server.streamUrl,
      PILLOLE_KEY: 'pil_live_key',
    },
  });

describe('for a person', () => {
  test('a table that grows; what else happens on stderr; the position at its end', async () => {
    const run = tail('7203.T', '--count', '3');
    const connection = await play.server.connection();
    const asked = await handOver(connection, 'e1:0-5', { snapshot: [shown(5, PAST)] });
    expect(asked).toMatchObject({ symbols: ['7203.T'], mode: 'all', backfill: false });
    connection.send(
      pill(6, 5, PAST),
      { type: 'quiet', symbol: '7203.T', reason: 'lunch_break', since: 'x', until: '03:30Z' },
      pill(7, 6, { ...PAST, late: true }),
      pill(8, 7, PAST),
    );
    expect(await run.exited).toBe(0);
    const lines = run.stdout().trimEnd().split('\n');
    expect(lines[0]).toBe(
      'TIME (UTC)                  SYMBOL                SPREAD %  STATE         CONFIDENCE  ' +
        '      AGE  FLAGS',
    );
    expect(lines[1]).toMatch(
      /^2020-01-01 00:00:00\.000000 {2}7203\.T {17} {0,12}0\.125 {2}open {18}88 {2} +\d+ d {2}snapshot$/,
    );
    expect(lines.map((line) => line.slice(lines[0]!.indexOf('FLAGS')))).toEqual([
      'FLAGS',
      'snapshot',
      '',
      'late',
      '',
    ]);
    expect(run.stderr()).toContain('Live: 7203.T from e1:0-5.');
    expect(run.stderr()).toContain('Quiet, and alive: 7203.T, lunch_break until 03:30Z.');
    expect(run.stderr()).toContain('Go on from here: --resume e1:0-8');
  });

  test('a gap that could not be filled stands among the pills, and is the exit code', async () => {
    const run = tail('7203.T', '-n', '2', '--no-snapshot');
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { snapshot: [shown(5)] });
    connection.send(pill(9, 8), pill(10, 9));
    expect(await run.exited).toBe(7);
    const lines = run.stdout().split('\n');
    expect(lines[2]).toBe(
      '--- gap: 7203.T after 0-5 until 0-8 (prev_broken); 0 pills handed over; NOT FILLED: ' +
        'No such address.',
    );
  });

  test('a connection that breaks: it says so, and goes on from its position', async () => {
    const run = tail('7203.T', '--count', '2');
    const first = await play.server.connection();
    await handOver(first, 'e1:0-5', { snapshot: [] });
    first.send(pill(6, null));
    await waitFor('the pill', () => run.stdout().includes('7203.T'));
    first.cut();
    const second = await play.server.connection();
    const asked = await handOver(second, 'e1:0-6', { subscribed: { recovered: true } });
    expect(asked.resume).toBe('e1:0-6');
    second.send(pill(7, 6));
    expect(await run.exited).toBe(0);
    expect(run.stderr()).toMatch(/ended with 1006.*\(connection_lost\) Attempt 1 in \d+ ms\./);
    expect(run.stderr()).toContain('Resumed: nothing is missing.');
  });

  test.each(['SIGINT', 'SIGTERM'] as const)('%s ends it, with the position', async (signal) => {
    const run = tail('7203.T');
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { snapshot: [] });
    connection.send(heartbeat('e1:0-9'), pill(10, null));
    await waitFor('the pill', () => run.stdout().includes('7203.T'));
    run.child.kill(signal);
    expect(await run.exited).toBe(130);
    expect(run.stderr()).toContain('--resume e1:0-10');
    await waitFor('the socket to be closed', () => !connection.isOpen);
  });

  test('whoever has read enough closes the pipe: it ends without a word', async () => {
    const run = tail('7203.T');
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { snapshot: [] });
    await waitFor('the head', () => run.stdout().includes('TIME'));
    run.child.stdout!.destroy();
    for (let offset = 6; connection.isOpen && offset < 5_000; offset += 1) {
      connection.send(pill(offset, null));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(await run.exited).toBe(0);
    expect(run.stderr()).not.toMatch(/EPIPE|Error/);
  });

  test('control characters of a server do not steer the terminal', async () => {
    const run = tail('7203.T', '-n', '1');
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { snapshot: [] });
    const status = { component: 'log', state: 'down', message: '\u001b[2Jgone\u009b' };
    connection.send({ type: 'status', ...status }, pill(6, null, { market_state: '\u001b[31m' }));
    expect(await run.exited).toBe(0);
    expect(run.stdout()).toContain('\ufffd[31m');
    expect(run.stderr()).toContain('log is down: \ufffd[2Jgone\ufffd');
  });
});

describe('--json', () => {
  test('one object a line: items and events, in the spelling of the contract', async () => {
    const run = tail('7203.T', '--json', '--count', '2', '--resume', 'e1:0-5');
    const connection = await play.server.connection();
    const asked = await handOver(connection, 'e1:0-6', {
      subscribed: { recovered: true },
      between: [pill(6, null, { replayed: true })],
    });
    expect(asked.resume).toBe('e1:0-5');
    connection.send({ type: 'error', code: 'internal', message: 'Odd.', fatal: false }, pill(9, 8));
    expect(await run.exited).toBe(7);
    const told = run.json();
    expect(told.map(({ type }) => type).sort()).toEqual([
      'closed',
      'error',
      'gap',
      'open',
      'pill',
      'pill',
    ]);
    const of = (type: string) => told.find((one) => one.type === type);
    expect(of('pill')).toMatchObject({ cursor: '0-6', replayed: true });
    expect(of('error')).toMatchObject({ code: 'internal', message: 'Odd.' });
    expect(of('gap')).toMatchObject({ filled: false, error: { code: 'not_found', status: 404 } });
    expect(told.at(-1)).toEqual({ type: 'closed', position: 'e1:0-9' });
    expect(run.stderr()).toBe('');
  });

  test('what ends it is on stderr, as JSON', async () => {
    const run = tail('7203.T', '--json', '--since', '2026-11-20T00:00:00Z');
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-6', { subscribed: { recovered: true } });
    const message = 'The key was revoked.';
    connection.send({ type: 'error', code: 'key_revoked', message, fatal: true, close: 4502 });
    connection.close(4502);
    expect(await run.exited).toBe(3);
    expect(JSON.parse(run.stderr())).toEqual({
      ...{ type: 'error', code: 'key_revoked', message, retry: 'never', close_code: 4502 },
      position: 'e1:0-6',
    });
  });
});
