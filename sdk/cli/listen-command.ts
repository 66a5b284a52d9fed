import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { challengeAnswer, secretBytes } from '../webhooks/verify-webhook.ts';
import {
  createInspector,
  DELIVERY_HEAD,
  type Delivery,
  type DeliveryAnswer,
  deliveryJson,
  deliveryLine,
} from './delivery.ts';
import type { ExitName } from './exit-codes.ts';
import { type AppAnswer, forwardDelivery } from './forward-delivery.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';

export interface ListenOptions {
  readonly port: number;
  readonly host: string;
  readonly secret?: readonly string[];
  readonly forwardTo?: string;
  /** Status with which verified deliveries are answered. */
  readonly status: number;
  readonly json?: boolean;
}

const LISTEN_LIMITS = {
  bodyBytesMax: 1_048_576,
  /** Concurrent requests; more are answered with 503. */
  requestsMax: 64,
  /** A request whose body is incomplete after this time is closed. */
  requestTimeoutMs: 15_000,
  connectionsMax: 256,
} as const;
/** After Ctrl-C, requests that are being answered may end within this time. */
const END_WITHIN_MS = 1_000;

interface ListenState {
  readonly options: ListenOptions;
  readonly isChecked: boolean;
  readonly forwardTo: URL | undefined;
  readonly inspect: ReturnType<typeof createInspector>;
  print(delivery: Delivery, answer: DeliveryAnswer): Promise<void> | undefined;
}

/** `pillole listen`: receives, verifies, prints and answers webhooks until Ctrl-C. */
export async function runListen(terminal: Terminal, options: ListenOptions): Promise<ExitName> {
  const secrets = secretsOf(terminal, options);
  const { signal, stdout, stderr } = terminal;
  const counts = { deliveries: 0, verified: 0, not_verified: 0, repeats: 0 };
  const state: ListenState = {
    options,
    isChecked: secrets.length > 0,
    forwardTo: options.forwardTo === undefined ? undefined : addressOf(options.forwardTo),
    inspect: createInspector(secrets),
    print(delivery, answer) {
      counts.deliveries += 1;
      if (delivery.isVerified === true) counts.verified += 1;
      if (delivery.isVerified === false) counts.not_verified += 1;
      if (delivery.isRepeat) counts.repeats += 1;
      const line = (options.json ? deliveryJson : deliveryLine)(delivery, answer);
      return writeLine(stdout, line);
    },
  };
  const server = createServer(state);
  const { port } = await listen(server, options);
  const url = `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`;
  if (options.json) writeLine(stdout, JSON.stringify({ type: 'listening', url }));
  else printStart(terminal, state, url);
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await close(server);
  if (options.json) writeLine(stdout, JSON.stringify({ type: 'closed', ...counts }));
  else {
    const { deliveries, verified, not_verified, repeats } = counts;
    writeLine(
      stderr,
      `Deliveries: ${deliveries}; verified: ${verified}; not verified: ${not_verified}; ` +
        `not checked: ${deliveries - verified - not_verified}; repeats: ${repeats}.`,
    );
  }
  return signal.reason === 'interrupted' ? 'interrupted' : 'ok';
}

function printStart({ stdout, stderr }: Terminal, state: ListenState, url: string): void {
  const { isChecked, forwardTo } = state;
  const to = forwardTo === undefined ? '' : `, forwards deliveries to ${forwardTo.href}`;
  writeLine(stderr, `Listening at ${url}, any path${to}. Press Ctrl-C to stop.`);
  if (!isChecked) {
    writeLine(
      stderr,
      'WARNING: NOTHING IS VERIFIED: without a secret, anyone may have sent these deliveries. Set ' +
        'PILLOLE_WEBHOOK_SECRET, or use --secret.',
    );
  }
  writeLine(stdout, DELIVERY_HEAD);
}

function createServer(state: ListenState): http.Server {
  const { requestTimeoutMs } = LISTEN_LIMITS;
  let concurrent = 0;
  const server = http.createServer(
    {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      if (concurrent >= LISTEN_LIMITS.requestsMax) {
        response.setHeader('retry-after', '1');
        return refuse(
          response,
          503,
          `${concurrent} deliveries are being answered already: try again.`,
        );
      }
      concurrent += 1;
      response.once('close', () => {
        concurrent -= 1;
      });
      receive(state, request, response).catch((error) => {
        if (response.headersSent) response.destroy();
        else refuse(response, 500, `pillole listen failed: ${error.message}`);
      });
    },
  );
  server.maxConnections = LISTEN_LIMITS.connectionsMax;
  return server;
}

async function receive(
  state: ListenState,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  if (request.method !== 'POST') {
    response.setHeader('allow', 'POST');
    return refuse(response, 405, 'This is `pillole listen`: send webhooks with POST.');
  }
  const body = await readBody(request);
  if (body === 'broken') return void response.destroy();
  if (body === 'too_large') return refuse(response, 413, 'A delivery may have at most 1 MiB.');
  const delivery = await state.inspect(request.headers, body);
  // If the sender no longer waits for the answer, the application need not answer either.
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const pass = (to: URL) => forwardDelivery(to, request, body, gone.signal);
  const answer = await answerOf(state, delivery, pass);
  await state.print(delivery, answer);
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body);
}

interface HttpAnswer extends DeliveryAnswer {
  readonly headers: http.OutgoingHttpHeaders;
  readonly body: string | Buffer;
}

async function answerOf(
  state: ListenState,
  delivery: Delivery,
  pass: (to: URL) => Promise<AppAnswer>,
): Promise<HttpAnswer> {
  const { options, forwardTo } = state;
  const plain = (status: number, body: string, note?: string): HttpAnswer => {
    return { status, note, headers: { 'content-type': 'text/plain; charset=utf-8' }, body };
  };
  if (delivery.fault !== undefined) return plain(401, `${delivery.fault.message}\n`);
  const { event } = delivery;
  const challenge = event && hasChallenge(event.data) ? challengeAnswer(event) : undefined;
  const own = challenge === undefined ? undefined : plain(200, challenge, 'challenge answered');
  if (forwardTo === undefined) return own ?? plain(options.status, '');
  try {
    const { status, headers, body } = await pass(forwardTo);
    const isAnswered = status >= 200 && status < 300 && body.includes(challenge ?? '');
    if (own !== undefined && !isAnswered) {
      const note =
        'challenge answered by pillole listen: your application does not answer it, so its endpoint ' +
        'would stay pending';
      return { ...own, note };
    }
    return { status, note: 'forwarded', headers, body };
  } catch (error) {
    const { message } = error as Error;
    return own !== undefined ? { ...own, note: message } : plain(502, `${message}\n`, message);
  }
}

/** Whether the data has a challenge: an unverified body may hold anything. */
function hasChallenge(data: unknown): boolean {
  return typeof (data as { challenge?: unknown } | null | undefined)?.challenge === 'string';
}

async function readBody(request: http.IncomingMessage): Promise<Buffer | 'too_large' | 'broken'> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length;
      if (bytes > LISTEN_LIMITS.bodyBytesMax) return 'too_large';
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch {
    return 'broken';
  }
}

/** Also closes the connection, since the rest of the request stays unread. */
function refuse(response: http.ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
  response.end(`${text}\n`);
}

async function listen(server: http.Server, { port, host }: ListenOptions): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      const what = code === 'EADDRINUSE' ? 'The port is in use.' : message;
      const how = 'Choose another one with --port or --host.';
      reject(new UsageError(`Cannot listen on port ${port} of ${host}: ${what} ${how}`));
    });
    server.listen(port, host, resolve);
  });
  return server.address() as AddressInfo;
}

async function close(server: http.Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  const timer = setTimeout(() => server.closeAllConnections(), END_WITHIN_MS);
  await closed;
  clearTimeout(timer);
}

/** Secrets of --secret, else of the environment, where spaces or commas separate them. */
function secretsOf({ env, stderr }: Terminal, { secret, json }: ListenOptions): string[] {
  const named = secret ?? (env.PILLOLE_WEBHOOK_SECRET ?? '').split(/[\s,]+/).filter(Boolean);
  for (const one of named) {
    try {
      secretBytes(one);
    } catch (error) {
      const from = secret === undefined ? 'PILLOLE_WEBHOOK_SECRET' : '--secret';
      throw new UsageError(`${from}: ${(error as Error).message}`);
    }
  }
  if (secret !== undefined && !json) {
    writeLine(
      stderr,
      'A secret on the command line is visible in the process list: PILLOLE_WEBHOOK_SECRET hides it.',
    );
  }
  return [...named];
}

function addressOf(url: string): URL {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return new URL(url);
  throw new UsageError(
    `"${url}" is not an address to forward deliveries to: http://… is expected.`,
  );
}
