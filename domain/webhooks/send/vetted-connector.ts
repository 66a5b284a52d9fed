import type net from 'node:net';
import { buildConnector } from 'undici';
import { AttemptError } from './attempt-error.ts';
import type { Egress } from './egress.ts';
import { openTunnel } from './proxy-tunnel.ts';
import { addressesOfHost, isLiteral, ResolveError, vetAddresses } from './resolve.ts';
import { portOf } from './url-policy.ts';

export interface ConnectorOptions extends Egress {
  /** Time limit of dialling one address. */
  readonly dialTimeoutMs: number;
  readonly ca: string | undefined;
  /** Ends resolving and dialling. */
  readonly signal: AbortSignal;
  /** Called for every connection that is established. */
  readonly onConnected: () => void;
}

/** How many addresses of a name are dialled, one after the other. */
const DIALS_MAX = 3;
/** Errors after which the next address is dialled. */
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
 * itself: no second look-up happens between the check and the connection. Literals are vetted too.
 * TLS verifies the certificate for the name (or the literal) of the URL. With an egress proxy, the
 * proxy is asked for the vetted address; for the name only if the proxy resolves names.
 *
 * Sessions are not resumed, so that every connection checks the name in its certificate.
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
  options: ConnectorOptions,
) {
  const { signal } = options;
  const addresses = await vettedAddresses(target, options);
  for (const [n, address] of addresses.entries()) {
    if (signal.aborted) break;
    try {
      return await dial(target, address, dialler, options);
    } catch (error) {
      const isLast = n === addresses.length - 1;
      if (isLast || !isOfAddress(error)) throw dialError(target, error);
    }
  }
  throw new AttemptError('stopped', 'The attempt was stopped while connecting.');
}

async function vettedAddresses(
  target: buildConnector.Options,
  { policy, resolver, proxy, signal }: ConnectorOptions,
): Promise<readonly string[]> {
  const { hostname } = target;
  if (proxy?.resolvesNames === true && !isLiteral(hostname)) return [hostname];
  let addresses: readonly string[];
  try {
    addresses = await addressesOfHost(hostname, resolver, signal);
  } catch (error) {
    if (error instanceof ResolveError) throw new AttemptError('dns', error.message);
    throw error;
  }
  const fault = vetAddresses(addresses, policy, portOf(target));
  if (fault === undefined) return addresses.slice(0, DIALS_MAX);
  throw new AttemptError(addresses.length === 0 ? 'dns' : 'address_refused', fault.detail);
}

/** @param address replaces the host: a literal, so that no code below resolves a name */
async function dial(
  target: buildConnector.Options,
  address: string,
  dialler: buildConnector.connector,
  { proxy, dialTimeoutMs: timeoutMs, signal }: ConnectorOptions,
) {
  const { port } = target;
  const socket = proxy && (await openTunnel(proxy, { host: address, port, timeoutMs, signal }));
  const tunnel = socket === undefined ? {} : { httpSocket: socket as net.Socket };
  // For literals undici sends no server name (RFC 6066); the certificate must then name the address.
  return new Promise<NonNullable<Parameters<buildConnector.Callback>[1]>>((resolve, reject) => {
    dialler({ ...target, ...tunnel, hostname: address }, (error, socket) => {
      // undici leaves the other argument out, whatever its types say.
      if (error) reject(error);
      else resolve(socket as NonNullable<typeof socket>);
    });
  });
}

/** Whether another address of the name may answer. */
function isOfAddress(error: unknown): boolean {
  if (error instanceof AttemptError) return error.reason === 'connect';
  return NEXT_ADDRESS.has(codeOf(error));
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}

function dialError({ hostname, protocol }: buildConnector.Options, error: unknown): AttemptError {
  if (error instanceof AttemptError) return error;
  const code = codeOf(error);
  if (code === 'ECONNREFUSED') {
    return new AttemptError('connect', `${hostname} refused the connection. Start its server.`);
  }
  if (NEXT_ADDRESS.has(code) || protocol === 'http:') {
    return new AttemptError(
      'connect',
      `${hostname} could not be reached. Check that its server runs and its firewall allows us.`,
    );
  }
  return new AttemptError(
    'tls',
    `The TLS handshake with ${hostname} failed (${code || 'unknown error'}). Serve a certificate ` +
      'of a public authority for this host, with its chain.',
  );
}
