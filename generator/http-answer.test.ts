import { describe, expect, it } from 'vitest';
import { type HttpAnswer, readBatchAnswer, readSingleAnswer, retryAfterMs } from './http-answer.ts';
import { SendError } from './sender.ts';

function answer(status: number, body: unknown = '', more: Partial<HttpAnswer> = {}): HttpAnswer {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { status, body: text, replayed: false, retryAfter: undefined, ...more };
}
const NOTHING = { ok: 0, replayed: 0, refused: [], retry: [], reason: '', retryAfterMs: 0 };
const ROW = { index: 4 };

describe('an answer to one pill', () => {
  it.each([301, 401, 403, 404, 405, 415])(
    '%d ends the run, because no pill can succeed',
    (status) => {
      expect(() => readSingleAnswer(ROW, answer(status, '<html>'))).toThrow(SendError);
    },
  );

  it.each([408, 429, 500, 502, 503])('%d is retried, even with a garbage body', (status) => {
    const read = readSingleAnswer(ROW, answer(status, '{"code":', { retryAfter: '2' }));
    const reason = `HTTP ${status}`;
    expect(read).toEqual({ ...NOTHING, retry: [ROW], reason, retryAfterMs: 2_000 });
  });

  it('a refusal has its code and first fault', () => {
    const body = {
      code: 'pill_invalid',
      errors: [{ pointer: '#/symbol', code: 'symbol_malformed', detail: 'A symbol …' }],
    };
    const reason = 'pill_invalid: #/symbol symbol_malformed A symbol …';
    const read = readSingleAnswer(ROW, answer(400, body));
    expect(read).toEqual({ ...NOTHING, refused: [{ index: 4, reason }] });
  });

  it('ok counts once, as new or as replayed', () => {
    expect(readSingleAnswer(ROW, answer(200))).toEqual({ ...NOTHING, ok: 1 });
    const replayed = answer(200, '', { replayed: true });
    expect(readSingleAnswer(ROW, replayed)).toEqual({ ...NOTHING, replayed: 1 });
  });
});

describe('an answer to a batch', () => {
  const rows = [{ index: 10 }, { index: 11 }, { index: 12 }, { index: 13 }];

  it.each(['', 'null', '[]', '"ok"', '{'])('a 200 with %s is not an acknowledgement', (body) => {
    expect(readBatchAnswer(rows, answer(200, body))).toMatchObject({ ok: 0, retry: rows });
  });

  it('results for unknown rows are ignored', () => {
    const results = [
      { index: 99, status: 'refused' },
      { index: 'x', status: 'unknown' },
    ];
    expect(readBatchAnswer(rows, answer(200, { results }))).toMatchObject({ ok: 4, retry: [] });
  });

  it('each row has one outcome; unknown ones are sent again', () => {
    const body = {
      status: 'partial',
      ok: 2,
      replayed: 1,
      refused: 1,
      unknown: 1,
      results: [
        { index: 1, status: 'refused', errors: [{ pointer: '#/id', code: 'id_conflict' }] },
        { index: 3, status: 'unknown' },
      ],
    };
    expect(readBatchAnswer(rows, answer(200, body))).toEqual({
      ok: 1,
      replayed: 1,
      refused: [{ index: 11, reason: '#/id id_conflict' }],
      retry: [{ index: 13 }],
      reason: '1 pills were not acknowledged',
      retryAfterMs: 0,
    });
  });

  it('503 retries all rows, 400 refuses all', () => {
    expect(readBatchAnswer(rows, answer(503))).toMatchObject({ retry: rows, refused: [] });
    expect(readBatchAnswer(rows, answer(400)).refused).toHaveLength(4);
  });
});

describe('Retry-After', () => {
  const now = Date.parse('2026-11-20T01:00:00Z');
  it.each([
    [undefined, 0],
    ['', 0],
    ['soon', 0],
    ['-5', 0],
    ['1', 1_000],
    ['86400', 30_000],
    ['Fri, 20 Nov 2026 01:00:07 GMT', 7_000],
    ['Fri, 20 Nov 2026 00:00:00 GMT', 0],
  ])('%s is a wait of %d ms', (text, wait) => {
    // A negative number is not a delay, and Date.parse reads "-5" as a year.
    expect(retryAfterMs(text, now)).toBe(wait);
  });
});
