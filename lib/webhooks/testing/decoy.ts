import net from 'node:net';

/** Stands where nobody may be led to, and counts who comes. */
export interface Decoy {
  readonly port: number;
  accepts(): number;
  close(): Promise<void>;
}

/** @param host `::` = every address of this machine, IPv4 too; port 0 takes a free one */
export async function openDecoy(host: string, port = 0): Promise<Decoy> {
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
    accepts: () => accepts,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
