import { WebSocket } from 'undici';
import type { Log } from '../../lib/log/log.ts';
import { backoffMs } from '../../lib/timing/backoff.ts';
import type { CanaryConfig } from './config.ts';
import type { Sightings } from './sightings.ts';

interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly pills?: readonly { readonly id: string }[];
}

/** Keeps a socket open that has subscribed to the canary's symbol. */
export function openSocket(
  { streamUrl, key, symbol }: Pick<CanaryConfig, 'streamUrl' | 'key' | 'symbol'>,
  sightings: Sightings,
  log: Log,
) {
  let socket: WebSocket;
  let isLive = false;
  let isClosed = false;
  let attempts = 0;
  let retry: NodeJS.Timeout | undefined;

  const receive = (frame: Frame) => {
    if (frame.type === 'live') {
      isLive = true;
      attempts = 0;
    } else if (frame.type === 'pill') sightings.see('stream', frame.id!);
    else if (frame.type === 'pills') {
      for (const { id } of frame.pills ?? []) sightings.see('stream', id);
    }
  };
  const connect = () => {
    socket = new WebSocket(`${streamUrl}/api/stream`, { headers: { 'x-api-key': key } });
    socket.addEventListener('open', () =>
      socket.send(JSON.stringify({ op: 'subscribe', id: '1', symbols: [symbol], snapshot: false })),
    );
    socket.addEventListener('message', ({ data }) => receive(JSON.parse(String(data)) as Frame));
    // What went wrong is in the close event, which follows.
    socket.addEventListener('error', () => undefined);
    socket.addEventListener('close', ({ code, reason }) => {
      isLive = false;
      if (isClosed) return;
      const waitMs = backoffMs(attempts, { firstMs: 500, maxMs: 5_000 });
      attempts += 1;
      log.warn({ code, reason, attempts }, 'the socket of the canary closed; it reconnects');
      retry = setTimeout(connect, waitMs);
    });
  };
  connect();
  return {
    isLive: () => isLive,
    close(): void {
      isClosed = true;
      clearTimeout(retry);
      socket.close();
    },
  };
}
