import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { createAnswerLog, FAILURE_LINES_PER_S_MAX } from './answer-log.ts';

function openLog(level: string) {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { lines, answers: createAnswerLog(pino({ level }, { write })) };
}

test('an outage writes ten lines a second, and the next second says how many were left out', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const { lines, answers } = openLog('info');
    for (let n = 0; n < 100; n += 1) answers.note(503, () => ({ request_id: `r_${n}` }));
    expect(lines).toHaveLength(FAILURE_LINES_PER_S_MAX);
    expect(lines[0]).toMatchObject({ level: 40, status: 503, request_id: 'r_0' });
    vi.advanceTimersByTime(1_000);
    answers.note(503, () => ({ request_id: 'r_100' }));
    expect(lines.at(-1)).toMatchObject({ request_id: 'r_100', left_out: 90 });
  } finally {
    vi.useRealTimers();
  }
});

test('other answers are written at the level debug only, and cost nothing otherwise', () => {
  const { lines, answers } = openLog('info');
  answers.note(200, () => {
    throw new Error('The line is not written.');
  });
  expect(lines).toEqual([]);
  const verbose = openLog('debug');
  verbose.answers.note(404, () => ({ request_id: 'r_1' }));
  expect(verbose.lines).toMatchObject([{ level: 20, status: 404, request_id: 'r_1' }]);
});
