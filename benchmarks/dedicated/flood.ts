import net from 'node:net';

// Knocks at a stream process: `flood.js HOST PORT PER_S` opens that many sockets a second, or as
// many as it can, and closes each when it was answered. Told at the end of stdin: how many were.

/** Handshakes under way at a time. */
const FLIGHTS_MAX = 200;
const TICK_MS = 5;

const [host = '', port = '', perS = ''] = process.argv.slice(2);
const handshake = [
  'GET /api/stream HTTP/1.1',
  `Host: ${host}:${port}`,
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  '\r\n',
].join('\r\n');
let due = 0;
let flights = 0;
let answered = 0;

function knock(): void {
  flights += 1;
  const socket = net.connect({ host, port: Number(port) }, () => socket.write(handshake));
  socket.once('data', () => {
    answered += 1;
    socket.destroy();
  });
  socket.on('error', () => undefined); // the process may be down just now
  socket.once('close', () => {
    flights -= 1;
  });
}

setInterval(() => {
  due = Math.min(due + (Number(perS) * TICK_MS) / 1_000, FLIGHTS_MAX);
  for (; due >= 1 && flights < FLIGHTS_MAX; due -= 1) knock();
}, TICK_MS);
process.stdin.resume();
process.stdin.once('end', () => {
  process.stdout.write(`${answered}\n`, () => process.exit());
});
