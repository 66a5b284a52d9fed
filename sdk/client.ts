import type {
  Account,
  HistoryPage,
  HistoryQuery,
  LatestMany,
  LatestOne,
  ServiceStatus,
  Usage,
} from './answers.ts';
import { PilloleError } from './error.ts';
import { FILL_LIMITS, nextPath } from './fill.ts';
import { type Address, follow } from './follow.ts';
import { type HistoryRange, readRange, timeText } from './history.ts';
import { createRest, type GetOptions } from './rest.ts';
import type { Stream, StreamOptions } from './stream.ts';
import {
  askUsable,
  type MissingVerdict,
  type PublishedVerdict,
  USABLE_TIMEOUT_MS,
  type Usable,
  type Verdict,
  type VerdictList,
  type Verdicts,
} from './verdict.ts';
import type { WebSocketClass } from './web-socket.ts';

export interface ClientOptions {
  /** Origin of the API, e.g. `https://api.example`. Without it only streams work. */
  readonly apiUrl?: string;
  /** Origin of streams, or the whole address, e.g. `wss://stream.example/api/stream`. */
  readonly streamUrl?: string;
  /** API key. Not for pages: whoever sees the page has it. */
  readonly key?: string | undefined;
  /** Gets a ticket for one socket, from your own server; instead of a key, in browsers. */
  readonly ticket?: () => Promise<string>;
  readonly fetch?: typeof fetch;
  readonly webSocket?: WebSocketClass;
}

/** The platform. Every method throws `PilloleError` alone; GETs are repeated as far as it is safe. */
export interface Client {
  /** The newest pill of all. One call. */
  latest(): Promise<LatestOne>;
  /** Of a symbol. @throws `no_pill` */
  latest(symbol: string): Promise<LatestOne>;
  /** Of up to 100 symbols: each is in `data` or in `errors`. One call. */
  latest(symbols: readonly string[]): Promise<LatestMany>;
  /** Plan, limits, addresses. Free. */
  account(): Promise<Account>;
  /** Calls by day, key and endpoint. Free. */
  usage(options?: { readonly days?: number }): Promise<Usage>;
  /** How the service is. Needs no key. */
  status(): Promise<ServiceStatus>;
  /** May one act on the newest pill of a symbol? @throws `endpoint_unavailable` of old servers */
  verify(symbol: string): Promise<Verdict>;
  /** Of one pill: was it published, and what became of it? */
  verify(pill: {
    readonly id: string;
    readonly symbol: string;
  }): Promise<PublishedVerdict | MissingVerdict>;
  /** Of all symbols that have the id, 100 at the most. */
  verify(pill: { readonly id: string }): Promise<VerdictList>;
  /** Up to 20 symbols. */
  verify(symbols: readonly string[]): Promise<Verdicts>;
  /** One page of history. Each is a call. */
  history(query: HistoryQuery): Promise<HistoryPage>;
  /** All pills of a symbol over a time, page by page as they are read; `to` is now by default. */
  history(symbol: string, from: string | Date, to?: string | Date): HistoryRange;
  /** Whether one may act on a symbol now. Never throws; in doubt the answer is no. */
  usable(symbol: string): Promise<Usable>;
  /** Opens a stream. @throws `not_configured` without streamUrl, `no_symbols` */
  stream(options: StreamOptions): Stream;
}

/** What differs between Node and browsers. */
export interface Platform {
  readonly webSocket: WebSocketClass | undefined;
}

const STREAM_PATH = '/api/stream';
const VERIFY_PATH = '/api/market/verify';
const HISTORY_PATH = '/api/pills';

export function createClientOn(platform: Platform, options: ClientOptions): Client {
  const { apiUrl, key, ticket } = options;
  const webSocket = options.webSocket ?? platform.webSocket;
  // Browsers refuse a fetch that is called as a method of something else.
  const fetchIt = options.fetch ?? ((...call: Parameters<typeof fetch>) => fetch(...call));
  const rest = createRest({ apiUrl, key, fetch: fetchIt });

  const address = async (): Promise<Address> => {
    const url = streamAddress(options.streamUrl);
    if (key !== undefined || ticket === undefined) return { url: url.href, key };
    url.searchParams.set('ticket', await ticket());
    return { url: url.href, key: undefined };
  };
  const get = async <T>(path: string, query: object, more?: GetOptions): Promise<T> => {
    try {
      return await rest.get<T>(withQuery(path, query), more);
    } catch (error) {
      throw asMissingEndpoint(error as PilloleError, path);
    }
  };
  const verify = (subject: unknown, more?: GetOptions): Promise<never> => {
    const query = Array.isArray(subject)
      ? { symbols: subject.join(',') }
      : typeof subject === 'string'
        ? { symbol: subject }
        : (subject as object);
    return get<never>(VERIFY_PATH, query, more);
  };
  const latest = (asked?: string | readonly string[]): Promise<never> => {
    const query = typeof asked === 'string' ? { symbol: asked } : { symbols: asked?.join(',') };
    return get<never>('/api/pills/latest', query);
  };

  const page = (query: HistoryQuery): Promise<HistoryPage> =>
    'next' in query
      ? get(nextPath(query.next, HISTORY_PATH) ?? HISTORY_PATH, {})
      : get(HISTORY_PATH, query);
  const history = (
    asked: HistoryQuery | string,
    from?: string | Date,
    to?: string | Date,
  ): never => {
    if (typeof asked !== 'string') return page(asked) as never;
    const range = {
      ...{ symbol: asked, from: from === undefined ? '' : timeText(from) },
      ...(to === undefined ? {} : { to: timeText(to) }),
      limit: FILL_LIMITS.pageMax,
    };
    return readRange((next) => page(next === undefined ? range : { next })) as never;
  };

  return {
    latest,
    verify: (subject: unknown): Promise<never> => verify(subject),
    account: () => get('/api/account', {}),
    usage: (query = {}) => get('/api/usage', query),
    status: () => get('/api/status', {}),
    history,
    usable: (symbol) =>
      askUsable(symbol, () => verify(symbol, { attemptsMax: 1, timeoutMs: USABLE_TIMEOUT_MS })),
    stream(wanted) {
      if (webSocket === undefined) throw missing('There is no WebSocket here: give `webSocket`.');
      streamAddress(options.streamUrl); // so that what is wrong is said here
      return follow({ rest, webSocket, address }, wanted);
    },
  };
}

function streamAddress(streamUrl: string | undefined): URL {
  if (streamUrl === undefined) throw missing('No streamUrl was given.');
  const url = new URL(streamUrl);
  url.protocol = url.protocol.replace('http', 'ws');
  if (url.pathname === '/') url.pathname = STREAM_PATH;
  return url;
}

function missing(message: string): PilloleError {
  return new PilloleError({ code: 'not_configured', message });
}

function withQuery(path: string, query: object): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const parameters = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  );
  return given.length === 0 ? path : `${path}?${parameters}`;
}

/** The server has nothing at this path, as opposed to no such thing there. */
function asMissingEndpoint(error: PilloleError, path: string): PilloleError {
  if (error.status !== 404 || error.code !== 'not_found') return error;
  const { problem, status } = error;
  const message = `This server has no ${path.split('?')[0]}.`;
  return new PilloleError({ code: 'endpoint_unavailable', message, status, problem, cause: error });
}
