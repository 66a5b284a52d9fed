import { createRequire } from 'node:module';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { mendRequestQueue } from './request-queue.ts';

mendRequestQueue();
const RequestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue');

const quiet = { debug: () => undefined, warn: () => undefined };

/** A queue of the library, and the numbers of the requests that were sent. */
function openQueue(maxInFlightRequests: number | null = null) {
  const sent: number[] = [];
  const queue = new RequestQueue({
    ...{ maxInFlightRequests, requestTimeout: 1_000, enforceRequestTimeout: false },
    ...{ clientId: 'test', broker: 'test:1', logger: quiet, isConnected: () => true },
  });
  const push = (correlationId: number) => {
    const entry = { correlationId, resolve: () => undefined, reject: () => undefined };
    const sendRequest = () => sent.push(correlationId);
    queue.push({ entry, expectResponse: true, sendRequest, requestTimeout: 1_000 });
  };
  const answer = (correlationId: number) =>
    queue.fulfillRequest({ correlationId, payload: Buffer.alloc(0), size: 0 });
  return { queue, sent, push, answer };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('a queue without a waiting request sets no timer', () => {
  const { sent, push, answer } = openQueue();
  push(1);
  answer(1);
  expect(sent).toEqual([1]);
  expect(vi.getTimerCount()).toBe(0);
});

test('requests wait until the time that the broker has asked for is over', () => {
  const { queue, sent, push, answer } = openQueue();
  push(1);
  queue.maybeThrottle(500);
  answer(1);
  push(2);
  push(3);
  vi.advanceTimersByTime(490);
  expect(sent).toEqual([1]);
  vi.advanceTimersByTime(10);
  expect(sent).toEqual([1, 2, 3]);
  expect(vi.getTimerCount()).toBe(0);
});

test('a request above the limit in flight is sent once another is answered', () => {
  const { sent, push, answer } = openQueue(1);
  push(1);
  push(2);
  vi.advanceTimersByTime(1_000);
  expect(sent).toEqual([1]);
  answer(1);
  expect(sent).toEqual([1, 2]);
  vi.advanceTimersByTime(20);
  expect(vi.getTimerCount()).toBe(0);
});

test('the end of a connection ends the timer', () => {
  const { queue, push } = openQueue(1);
  push(1);
  push(2);
  expect(vi.getTimerCount()).toBe(1);
  queue.destroy();
  expect(vi.getTimerCount()).toBe(0);
});
