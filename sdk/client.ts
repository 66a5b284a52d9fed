import { type Auth, credentialHeaders } from './auth/auth.ts';
import { PilloleError } from './error.ts';
import {
  HISTORY_LIMITS,
  type HistoryRange,
  nextPath,
  readRange,
  timeText,
} from './rest/history-range.ts';
import type {
  Account,
  HistoryOrder,
  HistoryPage,
  HistoryQuery,
  LatestMany,
  LatestOne,
  ServiceStatus,
  Usage,
} from './rest/responses.ts';
import { createRestClient, type GetOptions } from './rest/rest-client.ts';
import { askUsable, USABLE_TIMEOUT_MS, type Usable } from './rest/usable.ts';
import type {
  MissingVerdict,
  PublishedVerdict,
  Verdict,
  VerdictList,
  Verdicts,
} from './rest/verdict-types.ts';
import type { WebSocketClass } from './stream/client-socket.ts';
import { openStream } from './stream/reconnect.ts';
import type { StreamAddress } from './stream/stream-runtime.ts';
import type { Stream, StreamOptions } from './stream/stream-types.ts';

export interface ClientOptions {
  /** Origin of the API, e.g. `https://api.example`. Without it only streams work. */
  readonly apiUrl?: string;
  /** Origin or full address of streams, e.g. `wss://stream.example/api/stream`. */
  readonly streamUrl?: string;
  /** API key. Do not use it in web pages: every visitor could read it. */
  readonly key?: string | undefined;
  /** Instead of a key, for accounts with authentication schemes: `signRequests` or `bearerTokens`. */
  readonly auth?: Auth | undefined;
  /** In browsers, instead of a key: gets a ticket for one connection from your own server. */
  readonly ticket?: () => Promise<string>;
  readonly fetch?: typeof fetch;
  readonly webSocket?: WebSocketClass;
}

/** The platform. Methods throw only `PilloleError`; GETs are repeated where that is safe. */
export interface Client {
  /** The newest pill of all symbols. One call. */
  latest(): Promise<LatestOne>;
  /** The newest pill of a symbol. @throws `no_pill` */
  latest(symbol: string): Promise<LatestOne>;
  /** The newest pills of up to 100 symbols: each is in `data` or in `errors`. One call. */
  latest(symbols: readonly string[]): Promise<LatestMany>;
  /** Plan, limits and addresses. Free of charge. */
  account(): Promise<Account>;
  /** Calls by day, key and endpoint. Free of charge. */
  usage(options?: { readonly days?: number }): Promise<Usage>;
  /** State of the service. Needs no key. */
  status(): Promise<ServiceStatus>;
  /** Whether you may act on the newest pill of a symbol. @throws `endpoint_unavailable` */
  verify(symbol: string): Promise<Verdict>;
  /** Whether a pill was published, and whether it is still the newest of its symbol. */
  verify(pill: {
    readonly id: string;
    readonly symbol: string;
  }): Promise<PublishedVerdict | MissingVerdict>;
  /** Verdicts on the pills with this id, of at most 100 symbols. */
  verify(pill: { readonly id: string }): Promise<VerdictList>;
  /** Verdicts on the newest pills of up to 20 symbols. */
  verify(symbols: readonly string[]): Promise<Verdicts>;
  /** One page of history. One call. */
  history(query: HistoryQuery): Promise<HistoryPage>;
  /**
   * All pills of a symbol, or of up to 20 in one time order, page by page; `to` is now by default,
   * and the newest pill is last by default.
   */
  history(
    symbols: string | readonly string[],
    from: string | Date,
    to?: string | Date,
    order?: HistoryOrder,
  ): HistoryRange;
  /** Whether you may act on a symbol now. Never throws; in doubt the answer is no. */
  usable(symbol: string): Promise<Usable>;
  /** Opens a stream. @throws `not_configured` without streamUrl, `no_symbols` */
  stream(options: StreamOptions): Stream;
}

const STREAM_PATH = '/api/stream';
const VERIFY_PATH = '/api/market/verify';
const HISTORY_PATH = '/api/pills';
/** The only call that needs no key. */
const STATUS_PATH = '/api/status';

/**
 * @param platformWebSocket of Node or of the browser; `options` may name another one
 * @param platform `sendsHeaders`: a WebSocket can send headers, as in Node but not in browsers
 */
export function createClientOn(
  platformWebSocket: WebSocketClass | undefined,
  options: ClientOptions,
  platform: { readonly sendsHeaders: boolean },
): Client {
  const { apiUrl, key, auth, ticket, webSocket = platformWebSocket } = options;
  // Browsers refuse a fetch that is called as a method of another object.
  const callFetch = options.fetch ?? ((...args: Parameters<typeof fetch>) => fetch(...args));
  const rest = createRestClient({ apiUrl, credentials: { key, auth }, fetch: callFetch });

  const get = async <T>(path: string, query: object, more?: GetOptions): Promise<T> => {
    if (path !== STATUS_PATH) requireCredential(options);
    try {
      return await rest.get<T>(withQuery(path, query), more);
    } catch (error) {
      throw asMissingEndpoint(error as PilloleError, path);
    }
  };
  const verify = (subject: unknown, more?: GetOptions) =>
    get<never>(VERIFY_PATH, subjectQuery(subject), more);
  const historyPage = (query: HistoryQuery): Promise<HistoryPage> =>
    'next' in query
      ? get(nextPath(query.next, HISTORY_PATH) ?? HISTORY_PATH, {})
      : get(HISTORY_PATH, query);
  const history = (
    subject: HistoryQuery | string | readonly string[],
    from?: string | Date,
    to?: string | Date,
    order?: HistoryOrder,
  ): never => {
    if (typeof subject !== 'string' && !Array.isArray(subject)) {
      return historyPage(subject as HistoryQuery) as never;
    }
    const range = {
      ...subjectQuery(subject),
      from: from === undefined ? '' : timeText(from),
      ...(to === undefined ? {} : { to: timeText(to) }),
      order,
      limit: HISTORY_LIMITS.pageMax,
    };
    const first = () => get<HistoryPage>(HISTORY_PATH, range);
    return readRange((next) => (next === undefined ? first() : historyPage({ next }))) as never;
  };

  return {
    latest: (subject?: string | readonly string[]) =>
      get<never>('/api/pills/latest', subjectQuery(subject)),
    verify: (subject: unknown) => verify(subject),
    account: () => get('/api/account', {}),
    usage: (query = {}) => get('/api/usage', query),
    status: () => get(STATUS_PATH, {}),
    history,
    usable: (symbol) =>
      askUsable(symbol, () => verify(symbol, { attemptsMax: 1, timeoutMs: USABLE_TIMEOUT_MS })),
    stream(wanted) {
      if (webSocket === undefined) {
        throw notConfigured('This platform has no WebSocket: set `webSocket`.');
      }
      requireCredential(options);
      if (auth !== undefined && ticket === undefined && !platform.sendsHeaders) {
        throw notConfigured('A WebSocket of a browser sends no headers: set `ticket` for streams.');
      }
      streamAddress(options.streamUrl); // throws here rather than in the first attempt to connect
      return openStream({ rest, webSocket, address: () => nextAddress(options) }, wanted);
    },
  };
}

/**
 * Fails before any request is sent.
 * @throws PilloleError `key_missing`, `key_malformed`, `not_configured`
 */
export function requireCredential({ key, auth, ticket }: ClientOptions): void {
  if (key === undefined || key === '') {
    if (auth !== undefined || ticket !== undefined) return;
    const message = 'No key is set: pass `key` or `auth` to createClient.';
    throw new PilloleError({ code: 'key_missing', message });
  }
  if (auth !== undefined) throw notConfigured('Set only one of `key` and `auth`.');
  if (/^[\x21-\x7e]+$/.test(key)) return;
  const message = 'The key has blanks or line breaks: pass exactly the key.';
  throw new PilloleError({ code: 'key_malformed', message });
}

/** The address of one connection, with its credential. @throws PilloleError of `ticket` or `auth` */
async function nextAddress({
  key,
  auth,
  ticket,
  ...options
}: ClientOptions): Promise<StreamAddress> {
  const url = streamAddress(options.streamUrl);
  if (key !== undefined) return { url: url.href, key, headers: undefined };
  if (ticket !== undefined) {
    url.searchParams.set('ticket', await ticket());
    return { url: url.href, key, headers: undefined };
  }
  const headers = await credentialHeaders({ key, auth }, { method: 'GET', url: url.href });
  return { url: url.href, key, headers };
}

function streamAddress(streamUrl: string | undefined): URL {
  if (streamUrl === undefined) throw notConfigured('streamUrl is not set.');
  const url = new URL(streamUrl);
  url.protocol = url.protocol.replace('http', 'ws');
  if (url.pathname === '/') url.pathname = STREAM_PATH;
  return url;
}

function notConfigured(message: string): PilloleError {
  return new PilloleError({ code: 'not_configured', message });
}

function subjectQuery(subject: unknown): object {
  if (typeof subject === 'string') return { symbol: subject };
  if (Array.isArray(subject)) return { symbols: subject.join(',') };
  return (subject ?? {}) as object;
}

function withQuery(path: string, query: object): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/** A 404 of the path itself, as opposed to a 404 of the pill or symbol that it names. */
function asMissingEndpoint(error: PilloleError, path: string): PilloleError {
  if (error.status !== 404 || error.code !== 'not_found') return error;
  const { problem, status } = error;
  const message =
    `This server has no ${path.split('?')[0]}. Check that apiUrl is the address of the API, not of ` +
    'ingest or of the stream.';
  return new PilloleError({ code: 'endpoint_unavailable', message, status, problem, cause: error });
}
