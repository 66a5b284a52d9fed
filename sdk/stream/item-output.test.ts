import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { waitFor } from '../../testing/wait.ts';
import { heartbeat, pillFrame, sendHandover, snapshotPill } from '../testing/scripted-frames.ts';
import { cursorsOf, readPills, useScriptedServer } from '../testing/use-scripted-server.ts';

const fixture = useScriptedServer();

describe('a slow consumer', () => {
  test('mode all: reading stops, and later everything arrives', async () => {
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
    const items = fixture.open({ bufferMax: 100 }, { webSocket: Counted })[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-0', { snapshot: [snapshotPill(0)] });
    await items.next();
    const count = 60_000;
    for (let offset = 1; offset <= count; offset += 1)
      connection.send(pillFrame(offset, offset - 1));
    await waitFor('the socket to be paused', () => socket?.isPaused);
    // The bound, the rest of the same read of 64 KiB, and nothing after it.
    const readMax = Math.ceil(65_536 / JSON.stringify(pillFrame(1, 0)).length);
    const held = received;
    expect(held).toBeLessThan(100 + readMax + 10);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(received).toBe(held);
    expect(connection.buffered()).toBeGreaterThan(1_000_000);
    const read = await readPills(items, count);
    expect(cursorsOf(read)).toEqual(Array.from({ length: count }, (_, n) => `0-${n + 1}`));
    expect(read).toHaveLength(count);
  });

  test('mode all with a socket that cannot be paused: an error with the position', async () => {
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
    fixture.open({ bufferMax: 10, snapshot: false }, { webSocket: Unpausable });
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-0');
    for (let offset = 1; offset <= 20; offset += 1) connection.send(pillFrame(offset, offset - 1));
    await waitFor('the stream to close', () => fixture.stream.state === 'closed');
    const items = fixture.stream[Symbol.asyncIterator]();
    expect(cursorsOf(await readPills(items, 10))).toHaveLength(10);
    await expect(items.next()).rejects.toMatchObject({
      code: 'slow_consumer',
      position: 'e1:0-10',
    });
  });

  test('mode latest: the newest pill of each symbol waits, with a count of the pills that it replaced', async () => {
    let isLastReceived = false;
    class Watched extends WebSocket {
      constructor(url: string) {
        super(url);
        this.on('message', (data) => {
          if (String(data).includes('"heartbeat"')) isLastReceived = true;
        });
      }
    }
    const stream = fixture.open({ mode: 'latest', snapshot: false }, { webSocket: Watched });
    const items = stream[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-0');
    const other = { symbol: '0700.HK' };
    connection.send(
      pillFrame(1, null),
      pillFrame(2, null, other),
      pillFrame(3, null),
      pillFrame(4, null),
    );
    connection.send(pillFrame(5, null, { late: true, skipped: 2 }), heartbeat('e1:0-5'));
    await waitFor('the last frame', () => isLastReceived);
    const read = await readPills(items, 2);
    expect(cursorsOf(read)).toEqual(['0-4', '0-2']);
    expect(read[0]).toMatchObject({ skipped: 3 });
    expect(fixture.stream.position).toBe('e1:0-5');
  });
});

describe('the consumer', () => {
  test('a listener that is added later misses nothing', async () => {
    fixture.open();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [snapshotPill(5)] });
    connection.send(pillFrame(6, 5));
    await waitFor('live', () => fixture.stream.state === 'live');
    const got = fixture.record('snapshot', 'pill');
    await waitFor('both items to arrive', () => got.length === 2);
    expect(got.map(({ event }) => event)).toEqual(['snapshot', 'pill']);
    expect(fixture.stream.position).toBe('e1:0-6');
  });

  test('the position covers taken items, not waiting ones', async () => {
    const items = fixture.open({ snapshot: false })[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5');
    connection.send(pillFrame(6, 5), pillFrame(7, 6), heartbeat('e1:0-8'));
    await items.next();
    await waitFor('the first item to be taken', () => fixture.stream.position === 'e1:0-6');
    await items.next();
    await waitFor('the heartbeat after the last item', () => fixture.stream.position === 'e1:0-8');
  });

  test('leaving the loop closes the socket', async () => {
    fixture.open({ snapshot: false });
    const events = fixture.record('closed');
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5');
    connection.send(pillFrame(6, 5));
    for await (const item of fixture.stream) {
      expect(item.type).toBe('pill');
      break;
    }
    await waitFor('the socket to be closed', () => !connection.isOpen);
    expect(events.map(({ value }) => value)).toEqual([{ error: undefined, position: 'e1:0-6' }]);
    expect(() => fixture.stream[Symbol.asyncIterator]()).toThrow(/iterated once/);
  });
});
