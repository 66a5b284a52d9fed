import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';

/** A delivery as a customer's server got it. */
export interface Received {
  readonly path: string;
  readonly id: string;
  readonly type: string;
  /** Whether the independent library of Standard Webhooks takes it, by the secret of its path. */
  readonly isVerified: boolean;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a body as it came, looked at by tests
  readonly body: any;
  /** Cursors of its pills, in their order. */
  readonly cursors: readonly string[];
  readonly atMs: number;
  /** How many came to this path before. */
  readonly count: number;
}

/** How a path answers; undefined = never. */
export type Behave = (delivery: Received) => Answer | undefined | Promise<Answer | undefined>;

export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly delayMs?: number;
}

/** A customer's server on loopback: one path an endpoint. */
export interface Receiver {
  readonly url: string;
  readonly all: readonly Received[];
  at(path: string): readonly Received[];
  /** Cursors of all pills that came to a path. */
  cursors(path: string): readonly string[];
  /** 204 unless told otherwise. */
  behave(path: string, behave: Behave): void;
  trust(path: string, ...secrets: string[]): void;
  close(): Promise<void>;
}

export async function openReceiver(port = 0): Promise<Receiver> {
  const all: Received[] = [];
  const behaviours = new Map<string, Behave>();
  const secrets = new Map<string, readonly string[]>();
  const counts = new Map<string, number>();

  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const path = request.url!;
    const count = counts.get(path) ?? 0;
    counts.set(path, count + 1);
    const body = JSON.parse(text);
    const pills = body.data.pills ?? (body.type === 'pill.published' ? [body.data] : []);
    const delivery: Received = {
      ...{ path, text, body, count, headers: request.headers, type: body.type },
      id: String(request.headers['webhook-id']),
      isVerified: (secrets.get(path) ?? []).some((secret) => verifies(secret, text, request)),
      cursors: pills.map(({ cursor }: { cursor: string }) => cursor),
      atMs: Date.now(),
    };
    all.push(delivery);
    const answer = await (behaviours.get(path) ?? acknowledge)(delivery);
    if (answer === undefined) return;
    if (answer.delayMs !== undefined) await sleep(answer.delayMs);
    response.writeHead(answer.status ?? 204, answer.headers);
    response.end(answer.body);
  };
  const server = createServer((request, response) => {
    take(request, response).catch(() => response.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    all,
    at: (path) => all.filter((one) => one.path === path),
    cursors: (path) => all.filter((one) => one.path === path).flatMap(({ cursors }) => cursors),
    behave: (path, behave) => behaviours.set(path, behave),
    trust: (path, ...own) => secrets.set(path, own),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const acknowledge: Behave = () => ({});

function verifies(secret: string, text: string, request: IncomingMessage): boolean {
  try {
    new Webhook(secret).verify(text, request.headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}
