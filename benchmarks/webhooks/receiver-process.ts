import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { monotonicMicros } from '../harness/open-loop.ts';
import { answerParent } from '../harness/worker.ts';
import type { PillRun } from '../load/pill-load.ts';
import { countArrivals, type EndpointArrivals } from './arrivals.ts';

// A customer's server in a process of its own, with a path for each endpoint: its number.

/** An order to this process: each given part is carried out, and the report answers it. */
export interface Order {
  /** By the number of the endpoint. */
  readonly secrets?: readonly string[];
  /** The response of some endpoints: 500 at once, or none; all others answer 204 at once. */
  readonly respond?: { readonly how: 'fails' | 'hangs'; readonly endpoints: readonly number[] };
  readonly begin?: { readonly run: PillRun; readonly endpoints: number };
  /** Whether the report lists all arrivals, which are many. */
  readonly isLast?: boolean;
}

export interface ReceiverReport {
  readonly port: number;
  /** Pills that were accepted so far, each once, summed over the endpoints. */
  readonly pills: number;
  /** By the number of the endpoint. */
  readonly endpoints: readonly EndpointArrivals[];
  /**
   * Sampled messages whose signature an independent library accepted, and whose signature it
   * refused.
   */
  readonly verified: number;
  readonly forged: number;
}

/** One message in this many is verified: verifying all would take as much CPU as the dispatcher. */
const VERIFY_EVERY = 100;
/** Longer than a run without traffic, so that this side never closes a connection of the sender. */
const KEEP_ALIVE_MS = 300_000;

let counters: readonly ReturnType<typeof countArrivals>[] = [];
let secrets: readonly string[] = [];
let refusing: NonNullable<Order['respond']> = { how: 'fails', endpoints: [] };
let [messages, verified, forged] = [0, 0, 0];

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => receive(request, response, Buffer.concat(chunks).toString('utf8')));
  request.on('error', () => response.destroy());
});
server.keepAliveTimeout = KEEP_ALIVE_MS;
server.listen(0, '127.0.0.1');
await once(server, 'listening');

function receive(request: IncomingMessage, response: ServerResponse, body: string): void {
  const atMicros = monotonicMicros();
  const endpoint = Number(request.url!.slice(1));
  const how = refusing.endpoints.includes(endpoint) ? refusing.how : 'accepts';
  if (how !== 'hangs') response.writeHead(how === 'accepts' ? 204 : 500).end();
  const id = String(request.headers['webhook-id']);
  const pills = counters[endpoint]?.take(id, body, atMicros, how === 'accepts') ?? 0;
  if (pills === 0) return;
  messages += 1;
  if (messages % VERIFY_EVERY !== 1) return;
  try {
    new Webhook(secrets[endpoint]!).verify(body, request.headers as Record<string, string>);
    verified += 1;
  } catch {
    forged += 1;
  }
}

answerParent((order: Order): ReceiverReport => {
  if (order.secrets !== undefined) secrets = order.secrets;
  if (order.respond !== undefined) refusing = order.respond;
  if (order.begin !== undefined) {
    const { run, endpoints } = order.begin;
    counters = Array.from({ length: endpoints }, () => countArrivals(run));
    [messages, verified, forged] = [0, 0, 0];
  }
  return {
    port: (server.address() as AddressInfo).port,
    pills: counters.reduce((sum, { arrivals }) => sum + arrivals.pills, 0),
    endpoints: order.isLast === true ? counters.map(({ arrivals }) => arrivals) : [],
    verified,
    forged,
  };
});
