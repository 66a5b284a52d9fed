import type { Duplex } from 'node:stream';
import { Client } from 'undici';
import { AttemptError } from './attempt-error.ts';
import type { EgressProxy } from './egress.ts';

/**
 * Asks the proxy for a connection to `host:port` (RFC 9110 section 9.3.6).
 * @param of.host a vetted address, or a name if the proxy resolves names
 * @param of.timeoutMs bounds connecting to the proxy, and then waiting for its answer
 * @throws AttemptError that never contains the address or the credentials of the proxy
 */
export async function openTunnel(
  proxy: EgressProxy,
  of: {
    readonly host: string;
    readonly port: string;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
  },
): Promise<Duplex> {
  const { host, timeoutMs, signal } = of;
  const path = `${host.includes(':') ? `[${host}]` : host}:${of.port || 443}`;
  const client = new Client(proxy.origin, {
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    allowH2: false,
  });
  try {
    const { authorization } = proxy;
    const headers = {
      host: path,
      ...(authorization === undefined ? {} : { 'proxy-authorization': authorization }),
    };
    const { statusCode, socket } = await client.connect({ path, headers, signal });
    if (statusCode >= 200 && statusCode <= 299) return socket;
    socket.on('error', () => {}).destroy();
    throw refusal(statusCode);
  } catch (error) {
    if (error instanceof AttemptError) throw error;
    const isSilent = (error as NodeJS.ErrnoException).code === 'UND_ERR_HEADERS_TIMEOUT';
    throw isSilent ? new AttemptError('connect', SILENT) : new AttemptError('egress_down', DOWN);
  } finally {
    void client.close();
  }
}

/** 403 and 407 are the proxy's own refusals (407 is smokescreen's); others are of the way beyond. */
function refusal(status: number): AttemptError {
  if (status === 403 || status === 407) {
    const detail = `The egress proxy of the platform refused the connection (${status}).`;
    return new AttemptError('egress_refused', `${detail} Use a server on a public address.`);
  }
  const detail = `The server could not be reached through the egress proxy (${status}).`;
  return new AttemptError('connect', `${detail} Check that it runs and its firewall allows us.`);
}

const SILENT =
  'The egress proxy did not connect to the server in time. Check that the server runs and its ' +
  'firewall allows us.';
const DOWN =
  'The egress proxy of the platform is unavailable. Nothing is wrong with your endpoint.';
