import { Readable } from 'node:stream';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { AttemptError, exchangeError } from '../../webhooks/send/attempt-error.ts';
import { type Connections, openConnections } from '../../webhooks/send/connections.ts';
import type { Egress } from '../../webhooks/send/egress.ts';
import { checkUrl } from '../../webhooks/send/url-policy.ts';

/** Answers to PUT are empty, and errors are short; a longer answer is not read. */
const ANSWER_BYTES_MAX = 64 * 1024;
const DIAL_TIMEOUT_MS = 5_000;
/** An older connection carries no further request, so that its address is vetted again. */
const CONNECTION_AGE_MS = 60_000;
/** One for each partition that is delivered at a time, and one for a test. */
const CONNECTIONS_MAX = 8;

type Handler = Extract<NonNullable<S3ClientConfig['requestHandler']>, { handle: unknown }>;
type SdkRequest = Parameters<Handler['handle']>[0];

/**
 * Sends the requests of the SDK behind the same wall as webhooks: the URL and every address of its
 * name are checked, the vetted address is dialled, no redirect is followed, and no file or variable of
 * this machine is read.
 */
export function createVettedHandler(egress: Egress) {
  const open = new Map<string, Connections>();
  const connectionsTo = (origin: string) => {
    const known = open.get(origin);
    if (known !== undefined) return known;
    const made = openConnections(origin, {
      ...egress,
      dialTimeoutMs: DIAL_TIMEOUT_MS,
      connectionsMax: CONNECTIONS_MAX,
      ca: undefined,
      ageMaxMs: CONNECTION_AGE_MS,
    });
    open.set(origin, made);
    return made;
  };
  const handler = {
    async handle(request: SdkRequest, options: { abortSignal?: unknown } = {}) {
      const url = urlOf(request);
      const checked = checkUrl(url.href, egress.policy);
      if (!checked.ok) throw new AttemptError('url_refused', checked.fault.detail);
      const signal = options.abortSignal as AbortSignal;
      const response = await exchange(connectionsTo(url.origin), url, request, signal);
      return { response };
    },
    updateHttpClientConfig: () => undefined,
    httpHandlerConfigs: () => ({}),
    destroy(): void {
      for (const connections of open.values()) connections.retire();
      open.clear();
    },
  };
  return handler as unknown as Handler & { destroy(): void };
}

function urlOf({ protocol, hostname, port, path, query = {} }: SdkRequest): URL {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value ?? ''].flat().map((one) => [name, one] as [string, string]),
  );
  const search = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
  return new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}${search}`);
}

async function exchange(
  connections: Connections,
  url: URL,
  { method, headers, body }: SdkRequest,
  signal: AbortSignal,
) {
  const connection = await connections.acquire(signal);
  const end = () => connection.destroy(new AttemptError('stopped', 'The request was stopped.'));
  signal.addEventListener('abort', end, { once: true });
  let isReusable = false;
  try {
    const path = `${url.pathname}${url.search}`;
    const answer = await connection.client.request({
      method: method as 'PUT',
      path,
      headers,
      body,
    });
    const bytes = await readUpTo(answer.body as AsyncIterable<Buffer>);
    isReusable = true;
    return {
      statusCode: answer.statusCode,
      headers: textHeaders(answer.headers),
      body: Readable.from([bytes]),
    };
  } catch (error) {
    throw signal.aborted ? signal.reason : exchangeError(url.hostname, error);
  } finally {
    signal.removeEventListener('abort', end);
    connections.release(connection, isReusable);
  }
}

async function readUpTo(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) {
      const detail = `The S3 service answered more than ${ANSWER_BYTES_MAX} bytes. Check the endpoint.`;
      throw new AttemptError('protocol', detail);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function textHeaders(headers: Readonly<Record<string, string | string[] | undefined>>) {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, [value].flat().join(', ')]],
    ),
  );
}
