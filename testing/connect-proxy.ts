import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import type { Duplex } from 'node:stream';

/** What the proxy does with a CONNECT: a status refuses it, `hang` never answers, `close` hangs up. */
type Mode = 'connect' | 'hang' | 'close' | number;

/** An HTTP proxy that tunnels by CONNECT, as smokescreen and squid do. */
export type ConnectProxy = Awaited<ReturnType<typeof openConnectProxy>>;

/**
 * @param of.routes real destination by requested authority; any other is answered 502
 * @param of.authorization required value of Proxy-Authorization; otherwise the answer is 407
 */
export async function openConnectProxy(of: {
  readonly routes: () => Readonly<Record<string, number>>;
  readonly authorization?: string;
}) {
  const requested: string[] = [];
  const sockets = new Set<Duplex>();
  let mode: Mode = 'connect';
  const server = http.createServer((_, response) => response.writeHead(405).end());
  server.on('connection', (socket) => sockets.add(socket));
  server.on('connect', (request, client, head) => {
    client.on('error', () => client.destroy());
    requested.push(request.url!);
    const refuse = (status: number) => client.end(`HTTP/1.1 ${status} No\r\n\r\n`);
    if (mode === 'hang') return;
    if (mode === 'close') return void client.destroy();
    if (typeof mode === 'number') return void refuse(mode);
    const isKnown = of.authorization === undefined;
    if (!isKnown && request.headers['proxy-authorization'] !== of.authorization) {
      return void refuse(407);
    }
    const port = of.routes()[request.url!];
    if (port === undefined) return void refuse(502);
    const upstream = net.connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      client.pipe(upstream).pipe(client);
    });
    sockets.add(upstream);
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as net.AddressInfo).port,
    /** Authorities of all CONNECT requests so far. */
    requested: requested as readonly string[],
    set(wanted: Mode): void {
      mode = wanted;
    },
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await once(server.close(), 'close');
    },
  };
}
