import { LRUCache } from 'lru-cache';
import { type Answer, readAnswer } from './answer.ts';
import { AttemptError, exchangeError, type FailureReason } from './attempt-error.ts';
import { type Connection, type Connections, openConnections } from './connections.ts';
import { addressesOfHost, ResolveError, type Resolver, vet } from './resolve.ts';
import { checkUrl, type UrlFault, type UrlPolicy } from './url-policy.ts';

/** Where a message goes. */
export interface Target {
  readonly endpointId: string;
  readonly url: string;
  /** The customer's own; ours win, and those of the connection itself are left out. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What came of an attempt; latency in microseconds from its begin to the end of the answer. */
export type SendResult = SendAnswer | SendFailure;

/** An answer came, whatever its status. */
export interface SendAnswer {
  readonly kind: 'answered';
  readonly status: number;
  /** Of Retry-After: 0 to 86,400. */
  readonly retryAfterS: number | undefined;
  /** First 1,024 bytes of the body as text in one line, without control characters. */
  readonly answer: string;
  readonly latencyUs: number;
}

/** No complete answer came. */
export interface SendFailure {
  readonly kind: 'failed';
  readonly reason: FailureReason;
  /**
   * A sentence for the customer that says what to do. It repeats what they typed, and never an
   * address that a name resolved to: our name servers may know our network.
   */
  readonly detail: string;
  readonly latencyUs: number;
}

/** Posts messages to addresses of customers, and to nothing else: see `checkUrl` and `vet`. */
export interface Sender {
  /**
   * One attempt of one POST, without redirects; never throws. Attempts of one endpoint beyond its
   * connections wait, up to 1,000, and their time runs meanwhile; more fail at once as `timeout`.
   * @param headers ours, in lower case
   */
  send(
    target: Target,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Promise<SendResult>;
  /** What is wrong with a URL now, without a connection: at create and at change. */
  check(url: string): Promise<undefined | UrlFault>;
  /** Closes the connections of an endpoint, once what is under way has ended. */
  forget(endpointId: string): void;
  /** Ends what is under way as `stopped` and closes all connections. */
  close(): Promise<void>;
}

export interface SenderOptions {
  readonly policy: UrlPolicy;
  readonly resolver: Resolver;
  /** Of the whole attempt with DNS, connecting and body; default 15,000. */
  readonly timeoutMs?: number;
  /** Default 8. */
  readonly connectionsPerEndpoint?: number;
  /** Connections of so many endpoints are kept, those used last; default 2,000. */
  readonly endpointsMax?: number;
  /** Connections of an endpoint that nothing was sent to for so long are closed; default 60,000. */
  readonly idleMs?: number;
  /** No message goes over a connection that is older; default 60,000. */
  readonly connectionAgeMs?: number;
  /** Authorities instead of the machine's, in PEM: for tests. */
  readonly ca?: string;
}

const TIMEOUT_MS = 15_000;
const CONNECTIONS_MAX = 8;
const ENDPOINTS_MAX = 2_000;
const MINUTE_MS = 60_000;
/** Of the time of an attempt, an address that does not answer takes a third. */
const DIALS_PER_ATTEMPT = 3;
const SWEEPS_PER_IDLE = 4;

/** Headers of the connection and its framing: the HTTP client sets them, nobody else. */
const CONNECTION_HEADERS = new Set([
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'transfer-encoding',
  'content-length',
  'te',
  'trailer',
  'upgrade',
  'expect',
]);

/** Opens the one way by which the platform posts to addresses that customers name. */
export function openSender(options: SenderOptions): Sender {
  const { policy, resolver, timeoutMs = TIMEOUT_MS, idleMs = MINUTE_MS } = options;
  // Held here rather than tied to one signal: what is tied to a signal stays with it.
  const underWay = new Set<AbortController>();
  let isClosed = false;
  const byEndpoint = new LRUCache<string, Connections>({
    max: options.endpointsMax ?? ENDPOINTS_MAX,
    ttl: idleMs,
    updateAgeOnGet: true,
    dispose: (connections) => connections.retire(),
  });
  const sweep = setInterval(() => byEndpoint.purgeStale(), idleMs / SWEEPS_PER_IDLE).unref();

  const connectionsTo = (endpointId: string, origin: string): Connections => {
    const known = byEndpoint.get(endpointId);
    if (known?.origin === origin) return known;
    const connections = openConnections(origin, {
      policy,
      resolver,
      dialTimeoutMs: Math.ceil(timeoutMs / DIALS_PER_ATTEMPT),
      connectionsMax: options.connectionsPerEndpoint ?? CONNECTIONS_MAX,
      ca: options.ca,
      ageMaxMs: options.connectionAgeMs ?? MINUTE_MS,
    });
    byEndpoint.set(endpointId, connections);
    return connections;
  };

  const attempt = async (
    target: Target,
    headers: Readonly<Record<string, string>>,
    body: string,
    signal: AbortSignal,
  ): Promise<Answer> => {
    signal.throwIfAborted();
    const verdict = checkUrl(target.url, policy);
    if (!verdict.ok) throw new AttemptError('url_refused', verdict.fault.detail);
    const { url } = verdict;
    const connection = await connectionsTo(target.endpointId, url.origin).take(signal);
    const end = () => connection.destroy(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    let isReusable = false;
    try {
      const answer = await post(connection, url, merged(target.headers, headers), body);
      isReusable = answer.isWhole;
      return answer;
    } catch (error) {
      // Whatever broke when the time was up, that was why.
      throw signal.aborted ? signal.reason : exchangeError(url.hostname, error);
    } finally {
      signal.removeEventListener('abort', end);
      connection.give(isReusable && !signal.aborted);
    }
  };

  return {
    async send(target, headers, body) {
      const startedAt = performance.now();
      const latencyUs = () => Math.round((performance.now() - startedAt) * 1_000);
      const ending = new AbortController();
      const timer = setTimeout(() => ending.abort(timedOut(timeoutMs)), timeoutMs);
      underWay.add(ending);
      if (isClosed) ending.abort(stopped());
      try {
        const { signal } = ending;
        const { status, retryAfterS, answer } = await attempt(target, headers, body, signal);
        return { kind: 'answered', status, retryAfterS, answer, latencyUs: latencyUs() };
      } catch (error) {
        const { reason, message } = exchangeError(target.url, error);
        return { kind: 'failed', reason, detail: message, latencyUs: latencyUs() };
      } finally {
        clearTimeout(timer);
        underWay.delete(ending);
      }
    },
    async check(text) {
      const verdict = checkUrl(text, policy);
      if (!verdict.ok) return verdict.fault;
      const ending = new AbortController();
      underWay.add(ending);
      try {
        const { hostname } = verdict.url;
        const vetted = vet(await addressesOfHost(hostname, resolver, ending.signal), policy);
        return vetted.ok ? undefined : vetted.fault;
      } catch (error) {
        if (error instanceof ResolveError) return { code: 'dns_failed', detail: error.message };
        throw error;
      } finally {
        underWay.delete(ending);
      }
    },
    forget(endpointId) {
      byEndpoint.delete(endpointId);
    },
    async close() {
      clearInterval(sweep);
      isClosed = true;
      for (const ending of [...underWay]) ending.abort(stopped());
      byEndpoint.clear();
    },
  };
}

async function post(
  { client }: Connection,
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<Answer> {
  const response = await client.request({
    method: 'POST',
    path: `${url.pathname}${url.search}`,
    headers,
    body,
  });
  return readAnswer(response);
}

/** Ours over the customer's; answers are asked for as they are, because none is unpacked. */
function merged(
  own: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const lower = Object.entries(own).map(([name, value]) => [name.toLowerCase(), value] as const);
  const allowed = lower.filter(([name]) => !CONNECTION_HEADERS.has(name));
  return { ...Object.fromEntries(allowed), ...ours, 'accept-encoding': 'identity' };
}

function stopped(): AttemptError {
  return new AttemptError('stopped', 'We stopped this attempt; another one follows.');
}

function timedOut(timeoutMs: number): AttemptError {
  return new AttemptError(
    'timeout',
    `No complete answer came within ${timeoutMs / 1_000} s. ` +
      'Answer 2xx at once, and do the work afterwards.',
  );
}
