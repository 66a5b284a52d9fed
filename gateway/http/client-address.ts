import { isIP, isIPv4 } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';
import ipaddr from 'ipaddr.js';
import { canonicalNetworks } from '../../domain/accounts/networks.ts';
import type { ConfigReader } from '../../lib/config/config.ts';
import type { Log } from '../../lib/log/log.ts';

/** Entries of the setting: every request compares its hops with all of them. */
export const PROXIES_MAX = 256;
/** Entries of X-Forwarded-For that are read, from the right; a chain of proxies is shorter. */
export const HOPS_MAX = 32;
/** Names that proxy-addr knows for private networks. */
const NAMED_NETWORKS: ReadonlySet<string> = new Set(['loopback', 'linklocal', 'uniquelocal']);

/** Finds the client of a connection; see `createClientAddress`. */
export type ClientAddress = ReturnType<typeof createClientAddress>;

/**
 * Reads TRUSTED_PROXIES: addresses, networks or names of private networks, separated by commas or
 * spaces. @returns the list in canonical form; empty if no proxy is trusted
 * a fault names each entry that is wrong
 */
export function readTrustedProxies(reader: Pick<ConfigReader, 'get' | 'fault'>): readonly string[] {
  const entries = reader
    .get('TRUSTED_PROXIES')
    .split(/[\s,]+/)
    .filter(Boolean);
  if (entries.length > PROXIES_MAX) {
    reader.fault(
      `TRUSTED_PROXIES has ${entries.length} entries; at most ${PROXIES_MAX} are allowed: join neighbouring networks`,
    );
    return [];
  }
  const parsed = entries.map((entry) => (NAMED_NETWORKS.has(entry) ? entry : networkIn(entry)));
  const wrong = entries.filter((_entry, i) => parsed[i] === undefined);
  if (wrong.length > 0) {
    reader.fault(
      `TRUSTED_PROXIES: ${wrong.map((entry) => `"${entry}"`).join(', ')} must be the address of a proxy, ` +
        'a network with a prefix of at least 1 such as 10.0.0.0/8, or loopback, linklocal or uniquelocal',
    );
  }
  return parsed.filter((entry) => entry !== undefined);
}

/**
 * Creates the rule that finds the client of a connection: the peer itself unless it is a trusted
 * proxy; then the sender that the PROXY header of the connection names, if there is one, and then
 * the entries of X-Forwarded-For from the right, for as long as each is a trusted proxy itself. So a
 * client cannot choose its address: its proxy adds the true one to the right of all others. An entry
 * that is no address ends the chain: the proxy that sent it counts as the client.
 *
 * The function returns a canonical address, an IPv4-mapped one as IPv4; empty for a peer that is gone.
 * @param trusted as `readTrustedProxies` returns it
 * @param log warned once if a private address, probably a proxy, forwards clients without being trusted
 */
export function createClientAddress(trusted: readonly string[], log?: Pick<Log, 'warn'>) {
  const isTrusted = trusted.length === 0 ? () => false : proxyAddr.compile([...trusted]);
  let warner = log;
  const noteUntrusted = (address: string) => {
    if (!isPrivate(address)) return;
    const text = `${address} is not in TRUSTED_PROXIES, but forwards clients: all of them count as this address`;
    warner?.warn(text);
    warner = undefined;
  };
  return (peer: string | undefined, forwardedFor = '', proxied = ''): string => {
    let address = canonical(peer ?? '') ?? '';
    if (!isTrusted(address, 0)) {
      if (warner !== undefined && (forwardedFor !== '' || proxied !== '')) noteUntrusted(address);
      return address;
    }
    address = canonical(proxied) ?? address;
    let end = forwardedFor.length;
    for (let hop = 1; hop <= HOPS_MAX && end > 0 && isTrusted(address, hop); hop += 1) {
      const start = forwardedFor.lastIndexOf(',', end - 1) + 1;
      const entry = forwardedFor.slice(start, end).trim();
      end = start - 1;
      if (entry === '') continue; // RFC 9110 section 5.6.1.2: empty elements of a list do not count
      const next = canonical(withoutPort(entry));
      if (next === undefined) return address;
      address = next;
    }
    return address;
  };
}

/** @returns undefined for text that is no network; /0 would trust the header of every client */
function networkIn(entry: string): string | undefined {
  const parsed = canonicalNetworks([entry]);
  const [network] = parsed.ok ? parsed.networks : [];
  return network?.endsWith('/0') ? undefined : network;
}

const isPrivate = (address: string) =>
  address !== '' && ipaddr.parse(address).range() !== 'unicast';

/** Some proxies add the port: `203.0.113.7:4711`, `[2001:db8::7]:4711`. */
function withoutPort(entry: string): string {
  const [, v4, v6] = /^(?:([\d.]+):\d{1,5}|\[([^\]]+)\](?::\d{1,5})?)$/.exec(entry) ?? [];
  return v4 ?? v6 ?? entry;
}

function canonical(text: string): string | undefined {
  if (isIPv4(text)) return text;
  // The zone of a link-local address has a meaning only on this machine.
  const [address = ''] = text.split('%', 1);
  return isIP(address) === 0 ? undefined : ipaddr.process(address).toString();
}
