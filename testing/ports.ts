import dgram from 'node:dgram';
import net from 'node:net';

/** Below the ports that Linux gives to connections, apart from those of whole stacks (20,000 up). */
const PORTS = { from: 10_000, to: 20_000 };
/** Ranges for the processes of dedicated sockets, below the single ports. */
const RANGES = { from: 5_500, to: 7_900, size: 100 };
const TRIES_MAX = 200;

/**
 * Chooses a TCP port for a process that a test starts. No other test of this machine chooses the
 * port as long as this worker lives: the UDP port of the same number is bound as the claim. Without
 * the claim, two tests would occasionally choose the same free port, since a process takes a second
 * to listen.
 */
export async function getPort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const port = PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from));
    if ((await claim(port)) && (await isFree(port))) return port;
  }
  throw new Error('No port is free.');
}

/** Chooses a range of 100 ports for processes that a process under test starts, claimed likewise. */
export async function getPortRange(): Promise<{ readonly from: number; readonly to: number }> {
  const { from, to, size } = RANGES;
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const first = from + size * Math.floor(Math.random() * ((to - from) / size));
    if (await claim(first)) return { from: first, to: first + size - 1 };
  }
  throw new Error('No range of ports is free.');
}

function claim(port: number): Promise<boolean> {
  const socket = dgram.createSocket('udp4').unref();
  return new Promise((resolve) => {
    socket.once('error', () => {
      socket.close();
      resolve(false);
    });
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(true));
  });
}

function isFree(port: number): Promise<boolean> {
  const server = net.createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ port, host: '0.0.0.0', exclusive: true }, () =>
      server.close(() => resolve(true)),
    );
  });
}
