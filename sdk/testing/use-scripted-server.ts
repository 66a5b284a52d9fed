import { afterEach, beforeEach } from 'vitest';
import type { ClientOptions } from '../client.ts';
import { createClient, type Stream, type StreamEvents, type StreamItem } from '../index.ts';
import type { StreamOptions } from '../stream/stream-types.ts';
import { openScriptedServer, type ScriptedServer } from './scripted-server.ts';

/** A scripted server for each test of a file, and a stream from it. */
export interface ScriptedFixture {
  readonly server: ScriptedServer;
  /** Opens the test's stream, by default of `7203.T`. */
  open(options?: Partial<StreamOptions>, client?: Partial<ClientOptions>): Stream;
  readonly stream: Stream;
  /** Collects later events of the stream, in order. */
  record<K extends keyof StreamEvents>(...events: readonly K[]): Recorded<K>[];
}

export interface Recorded<K extends keyof StreamEvents> {
  readonly event: K;
  readonly value: StreamEvents[K];
}

/** Opens a server before each test of the file and closes stream and server after it. */
export function useScriptedServer(): ScriptedFixture {
  let server: ScriptedServer | undefined;
  let stream: Stream | undefined;
  beforeEach(async () => {
    server = await openScriptedServer();
  });
  afterEach(async () => {
    stream?.close();
    stream = undefined;
    await server?.close();
  });
  return {
    get server() {
      return server!;
    },
    get stream() {
      return stream!;
    },
    open(options = {}, client = {}) {
      const { httpUrl: apiUrl, streamUrl } = server!;
      const key = 'pil_live_key';
      stream = createClient({ apiUrl, streamUrl, key, ...client }).stream({
        symbols: '7203.T',
        ...options,
      });
      return stream;
    },
    record<K extends keyof StreamEvents>(...events: readonly K[]) {
      const got: Recorded<K>[] = [];
      for (const event of events) stream!.on(event, (value) => got.push({ event, value }));
      return got;
    },
  };
}

/** Reads items up to and including this many pills, or to the end. */
export async function readPills(items: AsyncIterator<StreamItem>, count: number) {
  const read: StreamItem[] = [];
  for (let pills = 0; pills < count; ) {
    const { value, done } = await items.next();
    if (done) break;
    read.push(value);
    if (value.type === 'pill') pills += 1;
  }
  return read;
}

/** Cursors of the pills among the items. */
export const cursorsOf = (items: readonly StreamItem[]): string[] =>
  items.flatMap((item) => (item.type === 'pill' ? [item.cursor] : []));
