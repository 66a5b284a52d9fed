import { expect, test } from 'vitest';
import { LIMITS } from '../limits.ts';
import { createModel, type FakeSocket } from '../testing/model.ts';
import { drainConnections } from './drain-connections.ts';

/** Well below the time that lib/run/run-process.ts and the local launcher give a process to stop. */
const STOP_MAX_MS = 4_000;

async function drain(count: number, drainMs: number) {
  const model = createModel();
  const sockets = Array.from({ length: count }, () => model.connect(1e9));
  await drainConnections({
    connections: () => sockets.map(({ connection }) => connection!),
    flush: model.hub.flush,
    drainMs,
    reconnectJitterMs: 100,
  });
  return sockets;
}

const typesOf = ({ frames }: FakeSocket) => frames.map(({ type }) => type);

test('a stop takes less than 4 s, with half a second to spare', () => {
  expect(LIMITS.drainMs + LIMITS.feedCloseMs).toBeLessThanOrEqual(STOP_MAX_MS - 500);
});

test.each([
  [1, 500],
  [1_000, 1_000],
])('%i connections in %i ms: all are closed, each after a last heartbeat', async (count, ms) => {
  const sockets = await drain(count, ms);
  for (const socket of sockets) {
    expect(typesOf(socket)).toEqual(['welcome', 'drain', 'heartbeat']);
    expect(socket.closed).toEqual({ code: 4000, reason: 'drain' });
  }
});
