import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';

/** A delivery as a customer's server received it. */
export interface Received {
  readonly path: string;
  readonly id: string;
  readonly type: string;
  /** Whether the independent library of Standard Webhooks verifies it by the secret of its path. */
  readonly isVerified: boolean;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a body as received, inspected by tests
  readonly body: any;
  /** Cursors of its pills, in their order. */
  readonly cursors: readonly string[];
  readonly atMs: number;
  /** Deliveries to this path before. */
  readonly count: number;
}

/** Makes the answers of a path; undefined = no answer. */
export type AnswerWith = (
  delivery: Received,
) => ReceiverAnswer | undefined | Promise<ReceiverAnswer | undefined>;

export interface ReceiverAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly delayMs?: number;
}

/** A customer's server on loopback, with one path per endpoint. */
export async function openWebhookReceiver(port = 0) {
  const all: Received[] = [];
  const behaviours = new Map<string, AnswerWith>();
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
    all: all as readonly Received[],
    at: (path: string): readonly Received[] => all.filter((one) => one.path === path),
    /** Cursors of all pills received at a path. */
    cursors: (path: string): readonly string[] =>
      all.filter((one) => one.path === path).flatMap(({ cursors }) => cursors),
    /** Sets the answers of a path; the default is 204. */
    answerWith: (path: string, behave: AnswerWith) => void behaviours.set(path, behave),
    trust: (path: string, ...own: string[]) => void secrets.set(path, own),
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const acknowledge: AnswerWith = () => ({});

function verifies(secret: string, text: string, request: IncomingMessage): boolean {
  try {
    new Webhook(secret).verify(text, request.headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}
