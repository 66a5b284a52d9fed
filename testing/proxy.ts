import net from 'node:net';

/** open: connections work; frozen: they hang silently; cut: they are closed and refused. */
type Mode = 'open' | 'frozen' | 'cut';

/** A proxy between a process and an engine, with which a test simulates outages of the engine. */
export interface EngineProxy {
  readonly url: string;
  /** Sets the mode of old and new connections whose application name contains `namePart` ("": all). */
  set(namePart: string, mode: Mode): void;
  /** Freezes the open connections; new ones work. @returns the number of frozen connections */
  freezeOpen(namePart: string): number;
  close(): Promise<void>;
}

interface Pair {
  readonly client: net.Socket;
  readonly server: net.Socket;
  name: string;
  isFrozen: boolean;
}

/** Opens a proxy to an address. Only PostgreSQL connections have an application name. */
export async function openProxy(engineUrl: string): Promise<EngineProxy> {
  const target = new URL(engineUrl);
  const pairs = new Set<Pair>();
  const modes = new Map<string, Mode>();

  const apply = (pair: Pair) => {
    const matching = [...modes].filter(([part]) => pair.name.includes(part));
    const mode = matching.at(-1)?.[1] ?? 'open';
    // Always unpiped first: piped twice, every byte of the engine would arrive twice.
    pair.server.unpipe(pair.client);
    if (mode === 'cut') {
      pair.client.destroy();
      pair.server.destroy();
    } else if (mode === 'frozen' || pair.isFrozen) {
      pair.server.pause();
    } else {
      pair.server.pipe(pair.client);
    }
  };
  const listener = net.createServer((client) => {
    const server = net.connect(Number(target.port || 5432), target.hostname);
    const pair: Pair = { client, server, name: '', isFrozen: false };
    pairs.add(pair);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => {
        other.destroy();
        pairs.delete(pair);
      });
    }
    client.once('data', (startup) => {
      pair.name = /application_name\0([^\0]*)/.exec(startup.toString('latin1'))?.[1] ?? '';
      server.write(startup);
      client.pipe(server);
      apply(pair);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const url = new URL(engineUrl);
  url.hostname = '127.0.0.1';
  url.port = String((listener.address() as net.AddressInfo).port);

  return {
    url: url.href,
    set(namePart, mode) {
      modes.delete(namePart);
      modes.set(namePart, mode);
      for (const pair of pairs) apply(pair);
    },
    freezeOpen(namePart) {
      const frozen = [...pairs].filter(({ name }) => name.includes(namePart));
      for (const pair of frozen) {
        pair.isFrozen = true;
        apply(pair);
      }
      return frozen.length;
    },
    async close() {
      for (const { client, server } of pairs) {
        client.destroy();
        server.destroy();
      }
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
