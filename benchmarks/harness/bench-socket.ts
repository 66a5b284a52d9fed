import WebSocket from 'ws';

const LIVE_MAX_MS = 15_000;

/** Opens a socket on all symbols, new pills only; resolves when the stream says `live`. */
export function openSocket(
  stream: string,
  apiKey: string,
  onFrame: (text: string) => void,
  onClose: (code: number) => void = () => undefined,
): Promise<WebSocket> {
  const socket = new WebSocket(`${stream.replace(/\/$/, '')}/api/stream`, {
    perMessageDeflate: false,
    headers: { 'X-API-Key': apiKey },
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      socket.terminate();
      reject(new Error(`A socket was not live within ${LIVE_MAX_MS} ms.`));
    }, LIVE_MAX_MS);
    socket.on('error', reject);
    socket.on('close', (code, reason) => {
      onClose(code);
      clearTimeout(timer);
      reject(new Error(`The stream closed a socket: ${code} ${reason.toString()}`));
    });
    socket.on('message', (data: Buffer) => {
      const text = data.toString('utf8');
      if (text.startsWith('{"type":"welcome"')) socket.send(subscribeFrame(['*']));
      else if (text.startsWith('{"type":"live"')) {
        clearTimeout(timer);
        resolve(socket);
      } else onFrame(text);
    });
  });
}

/** A frame that subscribes to new pills of some symbols; `*` means all. */
export function subscribeFrame(symbols: readonly string[], mode: 'all' | 'latest' = 'all'): string {
  return JSON.stringify({ op: 'subscribe', id: '1', symbols, mode, snapshot: false });
}
