import WebSocket from 'ws';

/** Sockets that ask for all there was, and read none of it. */
export interface SlowReaders {
  /** How many of them the server has closed so far; each was opened again. */
  ended(): number;
  close(): void;
}

const AGAIN_MS = 200;
const SINCE_MS = 3_600_000;

/** Opens them; one that is closed comes back, as a client in trouble does. */
export function openSlowReaders(url: string, key: string | undefined, count: number): SlowReaders {
  const open = new Set<WebSocket>();
  let ended = 0;
  let isClosed = false;
  const start = () => {
    if (isClosed) return;
    const socket = new WebSocket(url, { headers: { 'X-API-Key': key ?? '' } });
    open.add(socket);
    socket.on('open', () => {
      const since = new Date(Date.now() - SINCE_MS).toISOString();
      const resume = { since };
      socket.send(JSON.stringify({ op: 'subscribe', id: '1', symbols: ['*'], resume }));
      socket.pause();
      // A socket that is paused does not hear of its end: looked for now and then.
      const looking = setInterval(() => {
        if (open.has(socket)) socket.resume();
        setImmediate(() => socket.pause());
      }, 1_000);
      socket.once('close', () => clearInterval(looking));
    });
    socket.on('error', () => undefined);
    socket.once('close', () => {
      open.delete(socket);
      if (isClosed) return;
      ended += 1;
      setTimeout(start, AGAIN_MS);
    });
  };
  for (let i = 0; i < count; i += 1) start();
  return {
    ended: () => ended,
    close() {
      isClosed = true;
      for (const socket of open) socket.terminate();
    },
  };
}
