import { Resolver as CaresResolver } from 'node:dns/promises';
import net from 'node:net';
import type { ConfigReader } from '../../../lib/config/config.ts';
import { addressKind } from './address-kind.ts';
import { isOwnInterface } from './own-addresses.ts';
import {
  isLocalName,
  ownPortFault,
  type UrlFault,
  type UrlPolicy,
  withoutBrackets,
} from './url-policy.ts';

/** Resolves names by DNS alone, without /etc/hosts and search domains. */
export interface Resolver {
  /**
   * All A and AAAA records of a name, IPv4 first; none if the name has none or does not exist.
   * @throws ResolveError when no name server answered, or the signal fired
   */
  resolve(hostname: string, signal: AbortSignal): Promise<readonly string[]>;
}

/** The name servers failed or did not answer. */
export class ResolveError extends Error {
  override readonly name = 'ResolveError';
}

const TIMEOUT_MS = 2_000;
/** Codes that mean "there is none", as opposed to "unknown". */
const NONE = new Set(['ENODATA', 'ENOTFOUND']);

/**
 * Reads WEBHOOK_DNS_SERVERS, `ip:port` separated by commas; undefined = those of the machine. They
 * should answer like the public internet, without DNS64: NAT64 addresses are refused.
 */
export function readDnsServers(reader: ConfigReader): readonly string[] | undefined {
  const servers = reader.get('WEBHOOK_DNS_SERVERS')?.split(/\s*,\s*/);
  const isServer = (server: string) => {
    const [, v6, v4] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(server) ?? [];
    return v6 === undefined ? net.isIPv4(v4 ?? '') : net.isIPv6(v6);
  };
  if (servers?.every(isServer) === false) {
    reader.fault(
      'WEBHOOK_DNS_SERVERS must be addresses separated by commas, such as 192.0.2.1:53,[2001:db8::1]:53',
    );
  }
  return servers;
}

/** @param options timeoutMs bounds one resolution as a whole */
export function openResolver(
  options: { servers?: readonly string[] | undefined; timeoutMs?: number } = {},
): Resolver {
  const { servers, timeoutMs = TIMEOUT_MS } = options;
  return {
    async resolve(hostname, signal) {
      // One per name: cancel() ends all queries of a resolver.
      const resolver = new CaresResolver({ timeout: Math.ceil(timeoutMs / 3), tries: 2 });
      if (servers !== undefined) resolver.setServers(servers);
      const cancel = () => resolver.cancel();
      const timer = setTimeout(cancel, timeoutMs);
      signal.addEventListener('abort', cancel);
      try {
        if (signal.aborted) throw unresolved(hostname);
        const answers = await Promise.all([
          addressesOf(resolver.resolve4(hostname)),
          addressesOf(resolver.resolve6(hostname)),
        ]);
        // Many servers fail on AAAA: addresses that they do not return are not dialled either.
        const known = answers.filter((answer) => answer !== undefined);
        const addresses = known.flat();
        if (addresses.length > 0 || known.length === answers.length) return addresses;
        throw unresolved(hostname);
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', cancel);
      }
    },
  };
}

/** @returns undefined when the servers failed */
async function addressesOf(query: Promise<readonly string[]>) {
  try {
    return await query;
  } catch (error) {
    return NONE.has((error as NodeJS.ErrnoException).code ?? '') ? [] : undefined;
  }
}

function unresolved(hostname: string): ResolveError {
  return new ResolveError(
    `${hostname} could not be resolved: its name servers failed or did not answer in time. ` +
      'Check its DNS records.',
  );
}

/**
 * Vets the addresses of a name: EVERY address must be public, and none of this machine; by policy
 * all may be loopback instead, except for our own ports. One private address among public ones refuses the name, because it would be dialled in
 * turn. The sentence does not name addresses: our name servers may know more about our network than
 * the customer does. @returns why they are refused; undefined = all are allowed
 */
export function vetAddresses(
  addresses: readonly string[],
  policy: UrlPolicy,
  port: number,
): UrlFault | undefined {
  if (addresses.length === 0) {
    const detail = 'The host name of the URL has no address. Add an A or AAAA record.';
    return { code: 'dns_no_address', detail };
  }
  const kinds = new Set(addresses.map((one) => (isOwnInterface(one) ? 'own' : addressKind(one))));
  const [kind] = kinds;
  if (kinds.size === 1 && kind === 'public') return undefined;
  if (kinds.size === 1 && kind === 'loopback' && policy.allowLoopback) {
    return ownPortFault(port, policy);
  }
  const detail =
    'The host name of the URL resolves to an address that is not public. ' +
    'All of its A and AAAA records must be public.';
  return { code: 'dns_address', detail };
}

/**
 * The addresses of a URL's host in dialling order, not vetted yet. Literals stand for themselves,
 * `localhost` for loopback; only other names are looked up in the DNS.
 * @throws ResolveError
 */
export async function addressesOfHost(
  hostname: string,
  resolver: Resolver,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (isLiteral(hostname)) return [withoutBrackets(hostname)];
  if (isLocalName(hostname)) return ['127.0.0.1', '::1'];
  return resolver.resolve(hostname, signal);
}

/** Whether the host of a URL is an address. */
export function isLiteral(hostname: string): boolean {
  return net.isIP(withoutBrackets(hostname)) !== 0;
}
