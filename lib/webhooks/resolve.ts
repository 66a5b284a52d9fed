import { Resolver as CaresResolver } from 'node:dns/promises';
import net from 'node:net';
import { ConfigError, type ConfigReader } from '../config.ts';
import { addressKind } from './address-kind.ts';
import { bare, isLocalName, type UrlFault, type UrlPolicy } from './url-policy.ts';

/** Gives the addresses of names by DNS alone: /etc/hosts and search domains have no part in it. */
export interface Resolver {
  /**
   * All A and AAAA of a name, IPv4 first; none when it has none or does not exist.
   * @throws ResolveError when no name server told, or the signal fired
   */
  resolve(hostname: string, signal: AbortSignal): Promise<readonly string[]>;
}

/** The name servers failed, or were silent. */
export class ResolveError extends Error {
  override readonly name = 'ResolveError';
}

export type Vetted = { readonly ok: true } | { readonly ok: false; readonly fault: UrlFault };

const TIMEOUT_MS = 2_000;
/** What says "there is none", apart from "I cannot tell". */
const NONE = new Set(['ENODATA', 'ENOTFOUND']);

/**
 * Reads WEBHOOK_DNS_SERVERS, `ip:port` separated by commas; undefined = those of the machine. They
 * should answer as the public internet does, without DNS64: an address of NAT64 is refused.
 * @throws ConfigError
 */
export function readDnsServers(reader: ConfigReader): readonly string[] | undefined {
  const servers = reader.optional('WEBHOOK_DNS_SERVERS')?.split(/\s*,\s*/);
  const isServer = (server: string) => {
    const [, v6, v4] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(server) ?? [];
    return v6 === undefined ? net.isIPv4(v4 ?? '') : net.isIPv6(v6);
  };
  if (servers?.every(isServer) === false) {
    throw new ConfigError(
      'WEBHOOK_DNS_SERVERS must be addresses separated by commas, such as 192.0.2.1:53,[2001:db8::1]:53.',
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
      // One for each name: cancel() ends all that a resolver is asked.
      const resolver = new CaresResolver({ timeout: Math.ceil(timeoutMs / 3), tries: 2 });
      if (servers !== undefined) resolver.setServers(servers);
      const cancel = () => resolver.cancel();
      const timer = setTimeout(cancel, timeoutMs);
      signal.addEventListener('abort', cancel);
      try {
        if (signal.aborted) throw new ResolveError(unresolved(hostname));
        const answers = await Promise.all([
          addressesOf(resolver.resolve4(hostname)),
          addressesOf(resolver.resolve6(hostname)),
        ]);
        // Servers that choke on AAAA are many: what they did not tell is not dialled either.
        const known = answers.filter((answer) => answer !== undefined);
        const addresses = known.flat();
        if (addresses.length > 0 || known.length === answers.length) return addresses;
        throw new ResolveError(unresolved(hostname));
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', cancel);
      }
    },
  };
}

/** @returns undefined when the servers did not tell */
async function addressesOf(query: Promise<readonly string[]>) {
  try {
    return await query;
  } catch (error) {
    return NONE.has((error as NodeJS.ErrnoException).code ?? '') ? [] : undefined;
  }
}

function unresolved(hostname: string): string {
  return (
    `${hostname} could not be resolved: its name servers failed or did not answer in time. ` +
    'Check its DNS records.'
  );
}

/**
 * Judges what a name resolved to: EVERY address must be public; by policy all may be loopback
 * instead. One private address among public ones refuses the name, as it would be dialled in turn.
 * The sentence does not tell addresses: our name servers may know more of our network than the
 * customer does.
 */
export function vet(addresses: readonly string[], policy: UrlPolicy): Vetted {
  if (addresses.length === 0) {
    return refuse(
      'dns_no_address',
      'The name of the URL has no address. Give it an A or AAAA record.',
    );
  }
  const kinds = new Set(addresses.map(addressKind));
  const [kind] = kinds;
  if (kinds.size === 1 && (kind === 'public' || (kind === 'loopback' && policy.allowLoopback))) {
    return { ok: true };
  }
  return refuse(
    'dns_address',
    'The name of the URL resolves to an address that is not of the public internet. ' +
      'All of its A and AAAA records must be public.',
  );
}

/**
 * The addresses of a URL's host, in the order to dial them, not vetted yet. Literals stand for
 * themselves, `localhost` for loopback; only other names ask the DNS.
 * @throws ResolveError
 */
export async function addressesOfHost(
  hostname: string,
  resolver: Resolver,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const literal = bare(hostname);
  if (net.isIP(literal) !== 0) return [literal];
  if (isLocalName(hostname)) return ['127.0.0.1', '::1'];
  return resolver.resolve(hostname, signal);
}

function refuse(code: string, detail: string): Vetted {
  return { ok: false, fault: { code, detail } };
}
