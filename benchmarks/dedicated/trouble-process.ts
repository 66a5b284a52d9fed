import net from 'node:net';
import WebSocket from 'ws';
import { answerParent } from '../harness/worker.ts';

// Clients that trouble a Pro process, in a process of their own.

/** The trouble to cause; the answer counts what has happened so far. */
export interface Trouble {
  readonly url: string;
  readonly key: string;
  /** Handshakes to open per second, or as many as possible; each is closed when it is answered. */
  readonly handshakesPerS?: number;
  /** Sockets that request a replay of the whole log, and do not read it. */
  readonly slowReaders?: number;
}

const IN_FLIGHT_MAX = 200;
const TICK_MS = 5;
const AGAIN_MS = 200;
const CLOSE_CHECK_MS = 1_000;
const SINCE_MS = 3_600_000;

let answered = 0;
let ended = 0;

answerParent((trouble: Trouble | { readonly report: true }) => {
  if ('url' in trouble) {
    if (trouble.handshakesPerS !== undefined) flood(trouble.url, trouble.handshakesPerS);
    for (let i = 0; i < (trouble.slowReaders ?? 0); i += 1) openSlowReader(trouble);
  }
  return { answered, ended };
});

function flood(url: string, perS: number): void {
  const { hostname: host, port, pathname } = new URL(url);
  const handshake = [
    `GET ${pathname} HTTP/1.1`,
    `Host: ${host}:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    '\r\n',
  ].join('\r\n');
  let [due, inFlight] = [0, 0];
  setInterval(() => {
    due = Math.min(due + (perS * TICK_MS) / 1_000, IN_FLIGHT_MAX);
    for (; due >= 1 && inFlight < IN_FLIGHT_MAX; due -= 1) {
      inFlight += 1;
      const socket = net.connect({ host, port: Number(port) }, () => socket.write(handshake));
      socket.once('data', () => {
        answered += 1;
        socket.destroy();
      });
      socket.on('error', () => undefined); // the process may be down at this moment
      socket.once('close', () => {
        inFlight -= 1;
      });
    }
  }, TICK_MS);
}

/** A socket that the server closes is opened again, as a struggling client would do. */
function openSlowReader(trouble: Trouble): void {
  const socket = new WebSocket(trouble.url, { headers: { 'X-API-Key': trouble.key } });
  socket.on('open', () => {
    const resume = { since: new Date(Date.now() - SINCE_MS).toISOString() };
    socket.send(JSON.stringify({ op: 'subscribe', id: '1', symbols: ['*'], resume }));
    socket.pause();
    // A paused socket does not notice that it was closed: it reads for a moment now and then.
    const timer = setInterval(() => {
      socket.resume();
      setImmediate(() => socket.pause());
    }, CLOSE_CHECK_MS);
    socket.once('close', () => clearInterval(timer));
  });
  socket.on('error', () => undefined);
  socket.once('close', () => {
    ended += 1;
    setTimeout(() => openSlowReader(trouble), AGAIN_MS);
  });
}
