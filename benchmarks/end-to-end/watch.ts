import WebSocket from 'ws';
import { monotonicMicros } from '../clock.ts';
import { createTally, type Watch } from './tally.ts';

export interface WatchOptions {
  readonly stream: string;
  readonly clients: number;
  readonly apiKey: string | undefined;
}

const LIVE_MAX_MS = 15_000;
const TROUBLE: ReadonlySet<string> = new Set(['gap', 'error', 'drain', 'status']);

interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly pills?: readonly { readonly id: string }[];
}

/** Opens the sockets, each subscribed to all symbols; resolves when all are live. */
export async function openWatch(options: WatchOptions): Promise<Watch> {
  const tally = createTally(options.clients);
  const onFrame = (client: number, text: string) => {
    const now = monotonicMicros();
    const frame = JSON.parse(text) as Frame;
    if (frame.type === 'pill') tally.take(client, frame.id ?? '', now);
    else if (frame.type === 'pills') {
      for (const { id } of frame.pills ?? []) tally.take(client, id, now);
    } else if (TROUBLE.has(frame.type)) tally.remark(frame.type);
  };
  const sockets = await Promise.all(
    Array.from({ length: options.clients }, (_, client) =>
      openSocket(options, (text) => onFrame(client, text), tally.remark),
    ),
  );
  return {
    begin: tally.begin,
    end: tally.end,
    async close() {
      for (const socket of sockets) socket.terminate();
    },
  };
}

/** Opens a socket on all symbols, new pills alone; resolves when it is live. */
export function openSocket(
  { stream, apiKey }: Pick<WatchOptions, 'stream' | 'apiKey'>,
  onFrame: (text: string) => void,
  remark: (what: string) => void,
): Promise<WebSocket> {
  const socket = new WebSocket(`${stream.replace(/\/$/, '')}/api/stream`, {
    perMessageDeflate: false,
    headers: apiKey === undefined ? {} : { 'X-API-Key': apiKey },
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      socket.terminate();
      reject(new Error(`A socket was not live within ${LIVE_MAX_MS} ms.`));
    }, LIVE_MAX_MS);
    socket.on('error', reject);
    socket.on('close', (code, reason) => {
      remark(`closed ${code}`);
      clearTimeout(timer);
      reject(new Error(`The stream closed a socket: ${code} ${reason.toString()}`));
    });
    socket.on('message', (data: Buffer) => {
      const text = data.toString('utf8');
      if (text.startsWith('{"type":"welcome"')) {
        const subscribe = {
          op: 'subscribe',
          id: '1',
          symbols: ['*'],
          mode: 'all',
          snapshot: false,
        };
        socket.send(JSON.stringify(subscribe));
      } else if (text.startsWith('{"type":"live"')) {
        clearTimeout(timer);
        resolve(socket);
      } else onFrame(text);
    });
  });
}
