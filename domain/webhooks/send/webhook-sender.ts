import { LRUCache } from 'lru-cache';
import { AttemptError, exchangeError, type FailureReason } from './attempt-error.ts';
import { type Connections, openConnections } from './connections.ts';
import type { Egress } from './egress.ts';
import { type ReceiverAnswer, readAnswer } from './receiver-answer.ts';
import { addressesOfHost, isLiteral, ResolveError, vetAddresses } from './resolve.ts';
import { checkUrl, portOf, type UrlFault } from './url-policy.ts';

/** Where a message goes. */
export interface SendTarget {
  readonly endpointId: string;
  readonly url: string;
  /** The customer's own. Our headers take precedence; headers of the connection are left out. */
  readonly headers: Headers;
}

type Headers = Readonly<Record<string, string>>;

/** Result of an attempt; latency in microseconds from its beginning to the end of the answer. */
export type SendResult = SendAnswer | SendFailure;

/** There was an answer, whatever its status. */
export interface SendAnswer extends Omit<ReceiverAnswer, 'isComplete'> {
  readonly kind: 'answered';
  readonly latencyUs: number;
}

/** There was no complete answer. */
export interface SendFailure {
  readonly kind: 'failed';
  readonly reason: FailureReason;
  /**
   * A sentence for the customer that says what to do. It may repeat the customer's input, but never
   * an address that a name resolved to: our name servers may know our network.
   */
  readonly detail: string;
  readonly latencyUs: number;
}

export type Sender = ReturnType<typeof openSender>;

export interface SenderOptions extends Egress {
  /** For the whole attempt: DNS, connecting and body; default 15,000. */
  readonly timeoutMs?: number;
  /** Default 8. */
  readonly connectionsPerEndpoint?: number;
  /** Connections are kept for this many of the last used endpoints; default 2,000. */
  readonly endpointsMax?: number;
  /** Connections of an endpoint that was idle for this long are closed; default 60,000. */
  readonly idleMs?: number;
  /** An older connection carries no further message; default 60,000. */
  readonly connectionAgeMs?: number;
  /** Certificate authorities in PEM instead of the machine's, for tests. */
  readonly ca?: string;
}

const TIMEOUT_MS = 15_000;
const CONNECTIONS_MAX = 8;
const ENDPOINTS_MAX = 2_000;
const MINUTE_MS = 60_000;
/** An address that does not answer takes at most a third of the time of an attempt. */
const DIALS_PER_ATTEMPT = 3;
const SWEEPS_PER_IDLE = 4;

/**
 * Headers of the connection, the message or its signature, those by which proxies state who sent a
 * request, and cookies: customers cannot set them. `Authorization` is theirs on purpose: a receiver
 * may ask for a credential besides the signature.
 */
const RESERVED_HEADERS = new Set([
  ...['accept-encoding', 'host', 'user-agent', 'expect', 'cookie', 'cookie2'],
  // Hop by hop, RFC 9110 section 7.6.1.
  ...['connection', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'keep-alive'],
  ...['http2-settings', 'max-forwards', 'via', 'forwarded'],
  ...['x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'cf-connecting-ip'],
  ...['x-original-url', 'x-rewrite-url', 'x-http-method-override'],
]);

/** @param name in lower case */
export function isReservedHeader(name: string): boolean {
  return RESERVED_HEADERS.has(name) || /^(?:webhook-|content-|proxy-|x-forwarded)/.test(name);
}

/**
 * Opens the only sender through which the platform posts to addresses that customers name, and to
 * nothing else: see `checkUrl` and `vetAddresses`.
 */
export function openSender(options: SenderOptions) {
  const { policy, resolver, proxy, timeoutMs = TIMEOUT_MS, idleMs = MINUTE_MS } = options;
  // A set rather than one signal for all: listeners on a long-lived signal would pile up.
  const inFlight = new Set<AbortController>();
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
      proxy,
      dialTimeoutMs: Math.ceil(timeoutMs / DIALS_PER_ATTEMPT),
      connectionsMax: options.connectionsPerEndpoint ?? CONNECTIONS_MAX,
      ca: options.ca,
      ageMaxMs: options.connectionAgeMs ?? MINUTE_MS,
    });
    byEndpoint.set(endpointId, connections);
    return connections;
  };
  const startInFlight = () => {
    const ending = new AbortController();
    inFlight.add(ending);
    if (isClosed) ending.abort(stopped());
    return ending;
  };

  return {
    /**
     * Makes one POST, without redirects; never throws. Attempts of one endpoint beyond its connections
     * wait, up to 1,000, and their time runs meanwhile; more fail at once as `timeout`.
     * @param headers ours, in lower case
     */
    async send(target: SendTarget, headers: Headers, body: string): Promise<SendResult> {
      const startedAt = performance.now();
      const latencyUs = () => Math.round((performance.now() - startedAt) * 1_000);
      const ending = startInFlight();
      const timer = setTimeout(() => ending.abort(timedOut(timeoutMs)), timeoutMs);
      try {
        ending.signal.throwIfAborted();
        const checked = checkUrl(target.url, policy);
        if (!checked.ok) throw new AttemptError('url_refused', checked.fault.detail);
        const { url } = checked;
        const all = mergeHeaders(target.headers, headers);
        const connections = connectionsTo(target.endpointId, url.origin);
        const answer = await exchange(connections, url, all, body, ending.signal);
        const { status, retryAfterS, answer: text } = answer;
        return { kind: 'answered', status, retryAfterS, answer: text, latencyUs: latencyUs() };
      } catch (error) {
        const { reason, message } = exchangeError('The receiver', error);
        return { kind: 'failed', reason, detail: message, latencyUs: latencyUs() };
      } finally {
        clearTimeout(timer);
        inFlight.delete(ending);
      }
    },
    /** Checks a URL and its addresses without connecting, for create and change. */
    async check(text: string): Promise<UrlFault | undefined> {
      const checked = checkUrl(text, policy);
      if (!checked.ok) return checked.fault;
      const ending = startInFlight();
      try {
        const { hostname } = checked.url;
        if (proxy?.resolvesNames === true && !isLiteral(hostname)) return undefined;
        const addresses = await addressesOfHost(hostname, resolver, ending.signal);
        return vetAddresses(addresses, policy, portOf(checked.url));
      } catch (error) {
        if (error instanceof ResolveError) return { code: 'dns_failed', detail: error.message };
        throw error;
      } finally {
        inFlight.delete(ending);
      }
    },
    /** Closes the connections of an endpoint, once its attempts in flight have ended. */
    forget(endpointId: string): void {
      byEndpoint.delete(endpointId);
    },
    /** Ends attempts in flight as `stopped` and closes all connections. */
    async close(): Promise<void> {
      clearInterval(sweep);
      isClosed = true;
      for (const ending of [...inFlight]) ending.abort(stopped());
      byEndpoint.clear();
    },
  };
}

/** Posts over a connection that is this attempt's alone. @throws AttemptError */
async function exchange(
  connections: Connections,
  url: URL,
  headers: Headers,
  body: string,
  signal: AbortSignal,
): Promise<ReceiverAnswer> {
  const connection = await connections.acquire(signal);
  const end = () => connection.destroy(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  let isReusable = false;
  try {
    const path = `${url.pathname}${url.search}`;
    const response = await connection.client.request({ method: 'POST', path, headers, body });
    const answer = await readAnswer(response);
    isReusable = answer.isComplete;
    return answer;
  } catch (error) {
    // After the time limit, the timeout is the reason, whatever else failed.
    throw signal.aborted ? signal.reason : exchangeError(url.hostname, error);
  } finally {
    signal.removeEventListener('abort', end);
    connections.release(connection, isReusable && !signal.aborted);
  }
}

/**
 * Our headers take precedence over the customer's. Answers are requested uncompressed, because none
 * is unpacked.
 */
function mergeHeaders(own: Headers, ours: Headers): Headers {
  const lower = Object.entries(own).map(([name, value]) => [name.toLowerCase(), value] as const);
  const allowed = lower.filter(([name]) => !isReservedHeader(name));
  return { ...Object.fromEntries(allowed), ...ours, 'accept-encoding': 'identity' };
}

function stopped(): AttemptError {
  return new AttemptError('stopped', 'The platform stopped this attempt; another one follows.');
}

function timedOut(timeoutMs: number): AttemptError {
  return new AttemptError(
    'timeout',
    `There was no complete answer within ${timeoutMs / 1_000} s. ` +
      'Answer 2xx at once and do the work afterwards.',
  );
}
