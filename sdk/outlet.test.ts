import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { waitFor } from '../lib/testing/wait.ts';
import { handOver, heartbeat, pill, shown } from './testing/frames.ts';
import { cursorsOf, readPills, usePlayServer } from './testing/play.ts';

const play = usePlayServer();

describe('a slow consumer', () => {
  test('in all: the socket is not read any more, then everything comes', async () => {
    let received = 0;
    let socket: WebSocket | undefined;
    class Counted extends WebSocket {
      constructor(url: string) {
        super(url);
        socket = this;
        this.on('message', () => {
          received += 1;
        });
      }
    }
    const items = play.open({ bufferMax: 100 }, { webSocket: Counted })[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-0', { snapshot: [shown(0)] });
    await items.next();
    const count = 60_000;
    for (let offset = 1; offset <= count; offset += 1) connection.send(pill(offset, offset - 1));
    await waitFor('the socket to be paused', () => socket?.isPaused);
    // What came with the bound and in the same read of 64 KiB, and nothing after it.
    const readMax = Math.ceil(65_536 / JSON.stringify(pill(1, 0)).length);
    const held = received;
    expect(held).toBeLessThan(100 + readMax + 10);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(received).toBe(held);
    expect(connection.buffered()).toBeGreaterThan(1_000_000);
    const read = await readPills(items, count);
    expect(cursorsOf(read)).toEqual(Array.from({ length: count }, (_, n) => `0-${n + 1}`));
    expect(read).toHaveLength(count);
  });

  test('in all, where a socket cannot be paused: an error with the position', async () => {
    class Unpausable {
      readonly #socket: WebSocket;
      constructor(url: string) {
        this.#socket = new WebSocket(url);
        for (const name of ['onopen', 'onmessage', 'onclose', 'onerror'] as const) {
          this.#socket.addEventListener(name.slice(2) as 'open', (event) =>
            this[name]?.(event as never),
          );
        }
      }
      onopen: ((event: never) => void) | null = null;
      onmessage: ((event: never) => void) | null = null;
      onclose: ((event: never) => void) | null = null;
      onerror: ((event: never) => void) | null = null;
      send(text: string) {
        this.#socket.send(text);
      }
      close() {
        this.#socket.close();
      }
    }
    play.open({ bufferMax: 10, snapshot: false }, { webSocket: Unpausable });
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-0');
    for (let offset = 1; offset <= 20; offset += 1) connection.send(pill(offset, offset - 1));
    await waitFor('the end', () => play.stream.state === 'closed');
    const items = play.stream[Symbol.asyncIterator]();
    expect(cursorsOf(await readPills(items, 10))).toHaveLength(10);
    await expect(items.next()).rejects.toMatchObject({
      ...{ code: 'slow_consumer', position: 'e1:0-10' },
    });
  });

  test('in latest: the newest of each symbol waits, with a count of what it replaced', async () => {
    const items = play.open({ mode: 'latest', snapshot: false })[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-0');
    const other = { symbol: '0700.HK' };
    connection.send(pill(1, null), pill(2, null, other), pill(3, null), pill(4, null));
    connection.send(pill(5, null, { late: true, skipped: 2 }), heartbeat('e1:0-5'));
    await waitFor('all to be there', () => play.stream.state === 'live');
    await new Promise((resolve) => setTimeout(resolve, 100));
    const read = await readPills(items, 2);
    expect(cursorsOf(read)).toEqual(['0-4', '0-2']);
    expect(read[0]).toMatchObject({ skipped: 3 });
    expect(play.stream.position).toBe('e1:0-5');
  });
});

describe('the consumer', () => {
  test('a listener that comes later misses nothing', async () => {
    play.open();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { snapshot: [shown(5)] });
    connection.send(pill(6, 5));
    await waitFor('live', () => play.stream.state === 'live');
    const got = play.record('snapshot', 'pill');
    await waitFor('both', () => got.length === 2);
    expect(got.map(({ event }) => event)).toEqual(['snapshot', 'pill']);
    expect(play.stream.position).toBe('e1:0-6');
  });

  test('the position is that of what was taken, not of what waits', async () => {
    const items = play.open({ snapshot: false })[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5');
    connection.send(pill(6, 5), pill(7, 6), heartbeat('e1:0-8'));
    await items.next();
    await waitFor('the first', () => play.stream.position === 'e1:0-6');
    await items.next();
    await waitFor('the heartbeat behind the last', () => play.stream.position === 'e1:0-8');
  });

  test('leaving the loop closes the socket; so does close()', async () => {
    play.open({ snapshot: false });
    const events = play.record('closed');
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5');
    connection.send(pill(6, 5));
    for await (const item of play.stream) {
      expect(item.type).toBe('pill');
      break;
    }
    await waitFor('the socket to be closed', () => !connection.isOpen);
    expect(events.map(({ value }) => value)).toEqual([{ error: undefined, position: 'e1:0-6' }]);
    expect(() => play.stream[Symbol.asyncIterator]()).toThrow(/iterated once/);
  });
});
