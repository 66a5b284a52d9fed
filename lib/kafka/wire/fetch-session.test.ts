import { expect, test } from 'vitest';
import { ERROR_CODES } from './error-codes.ts';
import { createFetchSession } from './fetch-session.ts';

const answer = (sessionId: number, errorCode = 0) => ({ sessionId, errorCode, partitions: [] });
const wanted = (...offsets: number[]) => new Map(offsets.entries());

test('a session names only what has changed; each request has the next epoch', () => {
  const session = createFetchSession();
  expect(session.next(wanted(5, 7))).toEqual({
    session: { id: 0, epoch: 0 },
    offsets: wanted(5, 7),
  });
  expect(session.accept(answer(42))).toBe(true);
  expect(session.next(wanted(5, 8))).toEqual({
    session: { id: 42, epoch: 1 },
    offsets: new Map([[1, 8]]),
  });
  expect(session.accept(answer(42))).toBe(true);
  expect(session.next(wanted(5, 8))).toEqual({
    session: { id: 42, epoch: 2 },
    offsets: new Map(),
  });
});

test('a broker without room for a session gets full requests', () => {
  const session = createFetchSession();
  for (let n = 0; n < 3; n += 1) {
    expect(session.next(wanted(5))).toEqual({ session: { id: 0, epoch: 0 }, offsets: wanted(5) });
    expect(session.accept(answer(0))).toBe(true);
  }
});

test.each([ERROR_CODES.FETCH_SESSION_ID_NOT_FOUND, ERROR_CODES.INVALID_FETCH_SESSION_EPOCH])(
  'a session that the broker has dropped (error %i) begins anew',
  (errorCode) => {
    const session = createFetchSession();
    session.next(wanted(5));
    session.accept(answer(42));
    session.next(wanted(6));
    expect(session.accept(answer(0, errorCode))).toBe(false);
    expect(session.next(wanted(6))).toEqual({ session: { id: 0, epoch: 0 }, offsets: wanted(6) });
  },
);
