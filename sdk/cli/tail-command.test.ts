import { afterEach, describe, expect, test } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import { endRuns, runCli } from '../testing/run-program.ts';
import { heartbeat, pillFrame, sendHandover, snapshotPill } from '../testing/scripted-frames.ts';
import { useScriptedServer } from '../testing/use-scripted-server.ts';

const fixture = useScriptedServer();
afterEach(endRuns);

const PAST = { timestamp: '2020-01-01T00:00:00.000000Z' };

/** Starts `tail` on the scripted server. */
const tail = (...args: readonly string[]) =>
  runCli(['tail', ...args], {
    env: {
      PILLOLE_API_URL: fixture.server.httpUrl,
      PILLOLE_STREAM_URL: fixture.server.streamUrl,
      PILLOLE_KEY: 'pil_live_key',
    },
  });

describe('for people', () => {
  test('a table on stdout, other events on stderr, the position at the end', async () => {
    const run = tail('7203.T', '--count', '3');
    const quietSummary = {
      type: 'quiet',
      symbol: '*',
      venue: 'XTKS',
      reason: 'lunch_break',
      since: 'x',
    };
    const connection = await fixture.server.connection();
    const asked = await sendHandover(connection, 'e1:0-5', { snapshot: [snapshotPill(5, PAST)] });
    expect(asked).toMatchObject({ symbols: ['7203.T'], mode: 'all', backfill: false });
    connection.send(
      pillFrame(6, 5, PAST),
      { type: 'quiet', symbol: '7203.T', reason: 'lunch_break', since: 'x', until: '03:30Z' },
      { ...quietSummary, count: 12, symbols: ['7203.T'], until: '03:30Z' },
      { ...quietSummary, count: 12, over: true, until: null },
      pillFrame(7, 6, { ...PAST, late: true }),
      pillFrame(8, 7, PAST),
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
    expect(run.stderr()).toContain('Quiet, but connected: 7203.T, lunch_break until 03:30Z.');
    expect(run.stderr()).toContain('connected: XTKS, 12 symbols, lunch_break until 03:30Z.');
    expect(run.stderr()).toContain('No longer quiet: XTKS, 12 symbols.');
    expect(run.stderr()).toContain('Continue from here: --resume e1:0-8');
  });

  test('a gap that cannot be filled is printed among the pills and sets the exit code', async () => {
    const run = tail('7203.T', '-n', '2', '--no-snapshot');
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [snapshotPill(5)] });
    connection.send(pillFrame(9, 8), pillFrame(10, 9));
    expect(await run.exited).toBe(7);
    const lines = run.stdout().split('\n');
    expect(lines[2]).toBe(
      '--- gap: 7203.T after 0-5 until 0-8 (prev_broken); 0 pills delivered; NOT FILLED: ' +
        'No such address.',
    );
  });

  test('after a broken connection tail says so and continues from its position', async () => {
    const run = tail('7203.T', '--count', '2');
    const first = await fixture.server.connection();
    await sendHandover(first, 'e1:0-5', { snapshot: [] });
    first.send(pillFrame(6, null));
    await waitFor('the pill', () => run.stdout().includes('7203.T'));
    first.cut();
    const second = await fixture.server.connection();
    const asked = await sendHandover(second, 'e1:0-6', { subscribed: { recovered: true } });
    expect(asked.resume).toBe('e1:0-6');
    second.send(pillFrame(7, 6));
    expect(await run.exited).toBe(0);
    expect(run.stderr()).toMatch(/ended with 1006.*\(connection_lost\) Attempt 1 in \d+ ms\./);
    expect(run.stderr()).toContain('Resumed from the position.');
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    '%s ends tail, which prints the position',
    async (signal) => {
      const run = tail('7203.T');
      const connection = await fixture.server.connection();
      await sendHandover(connection, 'e1:0-5', { snapshot: [] });
      connection.send(heartbeat('e1:0-9'), pillFrame(10, null));
      await waitFor('the pill', () => run.stdout().includes('7203.T'));
      run.child.kill(signal);
      expect(await run.exited).toBe(130);
      expect(run.stderr()).toContain('--resume e1:0-10');
      await waitFor('the socket to be closed', () => !connection.isOpen);
    },
  );

  test('when the reader closes the pipe, tail ends without an error', async () => {
    const run = tail('7203.T');
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [] });
    await waitFor('the head', () => run.stdout().includes('TIME'));
    run.child.stdout!.destroy();
    for (let offset = 6; connection.isOpen && offset < 5_000; offset += 1) {
      connection.send(pillFrame(offset, null));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(await run.exited).toBe(0);
    expect(run.stderr()).not.toMatch(/EPIPE|Error/);
  });

  test('control characters of a server do not reach the terminal', async () => {
    const run = tail('7203.T', '-n', '1');
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [] });
    const status = { component: 'log', state: 'down', message: '\u001b[2Jgone\u009b' };
    connection.send(
      { type: 'status', ...status },
      pillFrame(6, null, { market_state: '\u001b[31m' }),
    );
    expect(await run.exited).toBe(0);
    expect(run.stdout()).toContain('\ufffd[31m');
    expect(run.stderr()).toContain('log is down: \ufffd[2Jgone\ufffd');
  });
});

describe('--json', () => {
  test('one object per line: items and events, with the names of the contract', async () => {
    const run = tail('7203.T', '--json', '--count', '2', '--resume', 'e1:0-5');
    const connection = await fixture.server.connection();
    const asked = await sendHandover(connection, 'e1:0-6', {
      subscribed: { recovered: true },
      between: [pillFrame(6, null, { replayed: true })],
    });
    expect(asked.resume).toBe('e1:0-5');
    connection.send(
      { type: 'error', code: 'internal', message: 'Odd.', fatal: false },
      pillFrame(9, 8),
    );
    expect(await run.exited).toBe(7);
    const printed = run.json();
    expect(printed.map(({ type }) => type).sort()).toEqual([
      'closed',
      'error',
      'gap',
      'open',
      'pill',
      'pill',
    ]);
    const of = (type: string) => printed.find((one) => one.type === type);
    expect(of('pill')).toMatchObject({ cursor: '0-6', replayed: true });
    expect(of('error')).toMatchObject({ code: 'internal', message: 'Odd.' });
    expect(of('gap')).toMatchObject({ filled: false, error: { code: 'not_found', status: 404 } });
    expect(printed.at(-1)).toEqual({ type: 'closed', position: 'e1:0-9' });
    expect(run.stderr()).toBe('');
  });

  test('the error that ends tail is on stderr, as JSON', async () => {
    const run = tail('7203.T', '--json', '--since', '2026-11-20T00:00:00Z');
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-6', { subscribed: { recovered: true } });
    const message = 'The key was revoked.';
    connection.send({ type: 'error', code: 'key_revoked', message, fatal: true, close: 4502 });
    connection.close(4502);
    expect(await run.exited).toBe(3);
    expect(JSON.parse(run.stderr())).toEqual({
      type: 'error',
      code: 'key_revoked',
      message,
      retry: 'never',
      close_code: 4502,
      position: 'e1:0-6',
    });
  });
});
