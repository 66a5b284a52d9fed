import net from 'node:net';

export type Decoy = Awaited<ReturnType<typeof openDecoy>>;

/**
 * A server that must never be reached; it counts connections.
 * @param host `::` = every address of this machine, IPv4 too; port 0 takes a free one
 */
export async function openDecoy(host: string, port = 0) {
  let accepts = 0;
  const server = net.createServer((socket) => {
    accepts += 1;
    socket.on('error', () => {}).resume();
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as net.AddressInfo).port,
    connectionCount: () => accepts,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
