import { expect, test } from 'vitest';
import { FRAMES_MAX, FrameLog } from './frame-log.ts';

test('frames are named by type or op, and numbered', () => {
  const log = new FrameLog();
  log.add('out', '{"op":"subscribe"}');
  log.add('in', '{"type":"pill","op":"x"}');
  log.add('in', '[1');
  log.add('event', 'Closed with 4502.', 'close');
  expect(log.frames.map(({ number, name }) => [number, name])).toEqual([
    [1, 'subscribe'],
    [2, 'pill'],
    [3, '?'],
    [4, 'close'],
  ]);
});

test('the newest frames are kept, and long ones are cut', () => {
  const log = new FrameLog();
  for (let count = 0; count < 10 * FRAMES_MAX + 7; count += 1) {
    log.add('in', `{"type":"pill","n":${count}}`);
    expect(log.frames.length).toBeLessThan(2 * FRAMES_MAX);
  }
  expect(log.count).toBe(10 * FRAMES_MAX + 7);
  expect(log.frames.at(-1)).toMatchObject({ number: log.count, name: 'pill' });
  expect(log.frames.length).toBeGreaterThanOrEqual(FRAMES_MAX);
  log.add('in', JSON.stringify({ type: 'snapshot', pills: 'x'.repeat(1_000_000) }));
  const { text, chars, name } = log.frames.at(-1)!;
  expect([text.length, chars > 1_000_000, name]).toEqual([2_000, true, 'snapshot']);
});
