import net from 'node:net';

/** What happens to connections: work, hang without a word, or are closed and refused. */
type Mode = 'open' | 'frozen' | 'cut';

/** Stands between a process and an engine, so that a test can take the engine away. */
export interface EngineProxy {
  readonly url: string;
  /** Sets what happens to connections, old and new, whose application name has this part; all have "". */
  set(namePart: string, mode: Mode): void;
  /** Freezes the connections that are open now; new ones work. @returns how many */
  freezeOpen(namePart: string): number;
  close(): Promise<void>;
}

interface Pair {
  readonly client: net.Socket;
  readonly server: net.Socket;
  name: string;
  isFrozen: boolean;
}

/** Opens a proxy in front of an address. Names are those that PostgreSQL is told; others have none. */
export async function openProxy(engineUrl: string): Promise<EngineProxy> {
  const target = new URL(engineUrl);
  const pairs = new Set<Pair>();
  const modes = new Map<string, Mode>();

  const apply = (pair: Pair) => {
    const matching = [...modes].filter(([part]) => pair.name.includes(part));
    const mode = matching.at(-1)?.[1] ?? 'open';
    // Away in any case: piped twice, every byte of the engine would come twice.
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
