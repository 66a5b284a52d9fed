import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { challengeAnswer, secretBytes } from '../webhook.ts';
import {
  type Answered,
  createInspector,
  DELIVERY_HEAD,
  type Delivery,
  deliveryJson,
  deliveryLine,
} from './delivery.ts';
import type { ExitName } from './exit-codes.ts';
import { type AppAnswer, forward } from './forward.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';

export interface ListenOptions {
  readonly port: number;
  readonly host: string;
  readonly secret?: readonly string[];
  readonly forwardTo?: string;
  /** What verified deliveries are answered with. */
  readonly status: number;
  readonly json?: boolean;
}

export const LISTEN_LIMITS = {
  bodyBytesMax: 1_048_576,
  /** Requests under way; more are told to come again. */
  requestsMax: 64,
  /** A delivery whose body is not there after so long is given up. */
  requestTimeoutMs: 15_000,
  connectionsMax: 256,
} as const;
/** What is under way at Ctrl-C may end within this. */
const END_WITHIN_MS = 1_000;

interface Listening {
  readonly options: ListenOptions;
  readonly isChecked: boolean;
  readonly forwardTo: URL | undefined;
  readonly inspect: (headers: http.IncomingHttpHeaders, body: Buffer) => Promise<Delivery>;
  tell(delivery: Delivery, answered: Answered): Promise<void> | undefined;
}

/** `pillole listen`: receives webhooks on this machine, verifies and shows them, until Ctrl-C. */
export async function runListen(terminal: Terminal, options: ListenOptions): Promise<ExitName> {
  const secrets = secretsOf(terminal, options);
  const { signal, stdout, stderr } = terminal;
  const counts = { deliveries: 0, verified: 0, not_verified: 0, repeats: 0 };
  const listening: Listening = {
    ...{ options, isChecked: secrets.length > 0 },
    forwardTo: options.forwardTo === undefined ? undefined : addressOf(options.forwardTo),
    inspect: createInspector(secrets).inspect,
    tell(delivery, answered) {
      counts.deliveries += 1;
      if (delivery.isVerified === true) counts.verified += 1;
      if (delivery.isVerified === false) counts.not_verified += 1;
      if (delivery.isRepeat) counts.repeats += 1;
      const line = (options.json ? deliveryJson : deliveryLine)(delivery, answered);
      return writeLine(stdout, line);
    },
  };
  const server = createServer(listening);
  const { port } = await listen(server, options);
  const url = `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`;
  if (options.json) writeLine(stdout, JSON.stringify({ type: 'listening', url }));
  else tellBegin(terminal, listening, url);
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

function tellBegin({ stdout, stderr }: Terminal, listening: Listening, url: string): void {
  const { isChecked, forwardTo } = listening;
  const to = forwardTo === undefined ? '' : `, passes what comes on to ${forwardTo.href}`;
  writeLine(stderr, `Listens at ${url}, any path${to}. Ctrl-C ends it.`);
  if (!isChecked) {
    writeLine(
      stderr,
      'WARNING: NOTHING IS VERIFIED: there is no secret, so anybody may have sent what comes. Set ' +
        'PILLOLE_WEBHOOK_SECRET, or give --secret.',
    );
  }
  writeLine(stdout, DELIVERY_HEAD);
}

function createServer(listening: Listening): http.Server {
  const { requestTimeoutMs } = LISTEN_LIMITS;
  let underWay = 0;
  const server = http.createServer(
    {
      ...{ requestTimeout: requestTimeoutMs, headersTimeout: requestTimeoutMs },
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      if (underWay >= LISTEN_LIMITS.requestsMax) {
        response.setHeader('retry-after', '1');
        return refuse(response, 503, `${underWay} deliveries are under way already: come again.`);
      }
      underWay += 1;
      response.once('close', () => {
        underWay -= 1;
      });
      receive(listening, request, response).catch((error) => {
        if (response.headersSent) response.destroy();
        else refuse(response, 500, `pillole listen failed: ${error.message}`);
      });
    },
  );
  server.maxConnections = LISTEN_LIMITS.connectionsMax;
  return server;
}

async function receive(
  listening: Listening,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  if (request.method !== 'POST') {
    response.setHeader('allow', 'POST');
    return refuse(response, 405, 'Webhooks are sent with POST; this is `pillole listen`.');
  }
  const body = await readBody(request);
  if (body === 'broken') return void response.destroy();
  if (body === 'too_large') return refuse(response, 413, 'A delivery has at most 1 MiB.');
  const delivery = await listening.inspect(request.headers, body);
  // Whoever waits no longer for the answer: the application need not either.
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const pass = (to: URL) => forward(to, request, body, gone.signal);
  const { answer, answered } = await answerOf(listening, delivery, pass);
  await listening.tell(delivery, answered);
  response.writeHead(answered.status, answer.headers);
  response.end(answer.body);
}

interface Answer {
  readonly headers: http.OutgoingHttpHeaders;
  readonly body: string | Buffer;
}

async function answerOf(
  listening: Listening,
  delivery: Delivery,
  pass: (to: URL) => Promise<AppAnswer>,
): Promise<{ readonly answer: Answer; readonly answered: Answered }> {
  const { options, forwardTo } = listening;
  const say = (status: number, text: string, note?: string) => ({
    answer: { headers: { 'content-type': 'text/plain; charset=utf-8' }, body: text },
    answered: { status, note },
  });
  if (delivery.fault !== undefined) return say(401, `${delivery.fault.message}\n`);
  const { event } = delivery;
  const challenge = event && isText(event.data) ? challengeAnswer(event) : undefined;
  const own = challenge === undefined ? undefined : say(200, challenge, 'challenge answered');
  if (forwardTo === undefined) return own ?? say(options.status, '');
  try {
    const { status, headers, body: text } = await pass(forwardTo);
    const isAnswered = status >= 200 && status < 300 && text.includes(challenge ?? '');
    if (own !== undefined && !isAnswered) {
      const note =
        'challenge answered by pillole listen: your application does not, and would stay pending';
      return { ...own, answered: { ...own.answered, note } };
    }
    return { answer: { headers, body: text }, answered: { status, note: 'forwarded' } };
  } catch (error) {
    const { message } = error as Error;
    if (own !== undefined) return { ...own, answered: { ...own.answered, note: message } };
    return say(502, `${message}\n`, message);
  }
}

/** Is there anything to read a challenge of? Bodies without a secret may hold anything. */
function isText(data: unknown): boolean {
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

/** Ends the connection too: what is unread of the request stays so. */
function refuse(response: http.ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
  response.end(`${text}\n`);
}

async function listen(server: http.Server, { port, host }: ListenOptions): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      const what = code === 'EADDRINUSE' ? 'Something listens there already.' : message;
      const how = 'Choose another with --port, or --host.';
      reject(new UsageError(`Port ${port} of ${host} cannot be had: ${what} ${how}`));
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

/** Of --secret, else of the environment, where spaces or commas separate several. */
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
      'A secret on the command line stands in the process list: PILLOLE_WEBHOOK_SECRET keeps it out.',
    );
  }
  return [...named];
}

function addressOf(url: string): URL {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return new URL(url);
  throw new UsageError(`"${url}" is no address to pass deliveries on to: http://… is expected.`);
}
