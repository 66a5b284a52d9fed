import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { monotonicMicros } from '../clock.ts';
import { type ArrivalBook, openArrivals } from './arrivals.ts';
import { type Answering, endpointOfPath, type Order, type ReceiverReport } from './receiver.ts';

// A customer's server in a process of its own, forked by receiver.ts, for all endpoints of a run.
// Protocol: the parent sends an order and is told what it asks for; disconnecting ends it.

/** One message in so many is verified: all would take as much CPU as the dispatcher. */
const VERIFY_EVERY = 100;
/** Longer than a run without traffic: a connection that we close is no failure of the sender. */
const KEEP_ALIVE_MS = 300_000;

let books: readonly ArrivalBook[] = [];
let secrets: readonly string[] = [];
let answering = new Map<number, Answering>();
let messages = 0;
let verified = 0;
let forged = 0;

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => take(request, response, Buffer.concat(chunks).toString('utf8')));
  request.on('error', () => response.destroy());
});
server.keepAliveTimeout = KEEP_ALIVE_MS;

function take(request: IncomingMessage, response: ServerResponse, body: string): void {
  const atMicros = monotonicMicros();
  const endpoint = endpointOfPath(request.url!);
  const how = answering.get(endpoint) ?? 'accepts';
  if (how !== 'hangs') response.writeHead(how === 'accepts' ? 204 : 500).end();
  const id = String(request.headers['webhook-id']);
  if ((books[endpoint]?.take(id, body, atMicros, how === 'accepts') ?? 0) === 0) return;
  messages += 1;
  if (messages % VERIFY_EVERY === 1) verify(endpoint, request, body);
}

function verify(endpoint: number, request: IncomingMessage, body: string): void {
  try {
    new Webhook(secrets[endpoint]!).verify(body, request.headers as Record<string, string>);
    verified += 1;
  } catch {
    forged += 1;
  }
}

function answerTo(order: Order): number | ReceiverReport {
  switch (order.kind) {
    case 'port':
      return (server.address() as AddressInfo).port;
    case 'trust':
      secrets = order.secrets;
      return 0;
    case 'answer':
      answering = new Map(order.endpoints.map((endpoint) => [endpoint, order.how]));
      return 0;
    case 'begin':
      books = Array.from({ length: order.run.endpoints }, () => openArrivals(order.run));
      [messages, verified, forged] = [0, 0, 0];
      return 0;
    case 'progress':
      return books.reduce((sum, { acceptedPills }) => sum + acceptedPills, 0);
    case 'report':
      return { endpoints: books.map(({ arrivals }) => arrivals), verified, forged };
  }
}

process.on('message', (order: Order) => {
  process.send?.(answerTo(order));
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send?.(0));
