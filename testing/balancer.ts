import net from 'node:net';

/** One stable address in front of several instances. */
export interface Balancer {
  readonly port: number;
  /** Sets the instances by port, used in turn; an instance that refuses is skipped. */
  use(ports: readonly number[]): void;
  /** Number of connections to the instance at this port. */
  opened(port: number): number;
  close(): void;
}

/** Opens a balancer without instances: it resets connections until there is one. */
export async function openBalancer(): Promise<Balancer> {
  let ports: readonly number[] = [];
  let turn = 0;
  const opened = new Map<number, number>();
  const sockets = new Set<net.Socket>();
  const dial = (client: net.Socket, left: number) => {
    const port = ports[turn % Math.max(1, ports.length)];
    turn += 1;
    if (port === undefined || left === 0) {
      client.destroy();
      return;
    }
    const server = net.connect(port, '127.0.0.1');
    sockets.add(server);
    let isOpen = false;
    server.once('connect', () => {
      isOpen = true;
      opened.set(port, (opened.get(port) ?? 0) + 1);
      client.pipe(server).pipe(client);
    });
    server.on('error', () => {
      if (isOpen) client.destroy();
      else dial(client, left - 1);
    });
    server.on('close', () => {
      sockets.delete(server);
      if (isOpen) client.destroy();
    });
    client.on('close', () => server.destroy());
  };
  const listener = net.createServer((client) => {
    sockets.add(client);
    client.on('error', () => undefined);
    client.on('close', () => sockets.delete(client));
    dial(client, ports.length);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    port: (listener.address() as net.AddressInfo).port,
    use(now) {
      ports = now;
    },
    opened: (port) => opened.get(port) ?? 0,
    close() {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
