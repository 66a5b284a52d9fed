import { buildConnector } from 'undici';
import { AttemptError } from './attempt-error.ts';
import { addressesOfHost, ResolveError, type Resolver, vet } from './resolve.ts';
import type { UrlPolicy } from './url-policy.ts';

export interface ConnectorOptions {
  readonly policy: UrlPolicy;
  readonly resolver: Resolver;
  /** Of one address. */
  readonly dialTimeoutMs: number;
  readonly ca: string | undefined;
  /** Ends resolving and dialling. */
  readonly signal: AbortSignal;
  /** Told of every connection that stands. */
  readonly onConnected: () => void;
}

/** Of a name with many addresses these are dialled, one after the other. */
const DIALS_MAX = 3;
/** Nobody answered at that address: the next one may. */
const NEXT_ADDRESS = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/**
 * A connector for undici that resolves the host, vets every address, and dials a vetted address
 * itself: between the judgement and the connection nobody is asked again. Literals are vetted as
 * well. TLS verifies the certificate for the name (or the literal) of the URL.
 *
 * Sessions are not resumed, so that every connection has the name of its certificate checked.
 */
export function vettedConnector(options: ConnectorOptions): buildConnector.connector {
  const dialler = buildConnector({
    timeout: options.dialTimeoutMs,
    maxCachedSessions: 0,
    rejectUnauthorized: true,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });
  return (target, callback) => {
    connect(target, dialler, options).then(
      (socket) => {
        options.onConnected();
        callback(null, socket);
      },
      (error: Error) => callback(error, null),
    );
  };
}

async function connect(
  target: buildConnector.Options,
  dialler: buildConnector.connector,
  { policy, resolver, signal }: ConnectorOptions,
) {
  const addresses = await vettedAddresses(target.hostname, policy, resolver, signal);
  for (const [n, address] of addresses.entries()) {
    if (signal.aborted) break;
    try {
      return await dial(target, address, dialler);
    } catch (error) {
      const isLast = n === addresses.length - 1;
      if (isLast || !NEXT_ADDRESS.has(codeOf(error))) throw dialError(target, error);
    }
  }
  throw new AttemptError('stopped', 'The attempt was ended while it connected.');
}

async function vettedAddresses(
  hostname: string,
  policy: UrlPolicy,
  resolver: Resolver,
  signal: AbortSignal,
): Promise<readonly string[]> {
  let addresses: readonly string[];
  try {
    addresses = await addressesOfHost(hostname, resolver, signal);
  } catch (error) {
    if (error instanceof ResolveError) throw new AttemptError('dns', error.message);
    throw error;
  }
  const vetted = vet(addresses, policy);
  if (vetted.ok) return addresses.slice(0, DIALS_MAX);
  const reason = addresses.length === 0 ? 'dns' : 'address_refused';
  throw new AttemptError(reason, vetted.fault.detail);
}

/** @param address in place of the host: a literal, so that nothing below looks a name up */
function dial(target: buildConnector.Options, address: string, dialler: buildConnector.connector) {
  // undici names no server for literals, as RFC 6066 has it; then the address is what is verified.
  return new Promise<NonNullable<Parameters<buildConnector.Callback>[1]>>((resolve, reject) => {
    dialler({ ...target, hostname: address }, (error, socket) => {
      // It leaves the other one out, whatever its types say.
      if (error) reject(error);
      else resolve(socket as NonNullable<typeof socket>);
    });
  });
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}

function dialError({ hostname, protocol }: buildConnector.Options, error: unknown): AttemptError {
  const code = codeOf(error);
  if (code === 'ECONNREFUSED') {
    return new AttemptError('connect', `${hostname} refused the connection. Start its server.`);
  }
  if (NEXT_ADDRESS.has(code) || protocol === 'http:') {
    return new AttemptError(
      'connect',
      `${hostname} could not be reached. Check that its server runs and its firewall lets us in.`,
    );
  }
  return new AttemptError(
    'tls',
    `${hostname} did not pass TLS (${code || 'unknown fault'}). Serve a certificate of a public ` +
      'authority for this host, with its chain.',
  );
}
