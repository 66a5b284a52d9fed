import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Networks that a key may be limited to: each is compared at every call. */
export const NETWORKS_MAX = 64;

export type Networks =
  | { readonly ok: true; readonly networks: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/**
 * Reads networks, v4 or v6, with or without a prefix length: host bits become zero, the text is
 * the canonical one (RFC 5952), repeats are dropped. The reason names the place, not the text.
 */
export function canonicalNetworks(texts: readonly string[]): Networks {
  if (texts.length > NETWORKS_MAX) {
    return { ok: false, reason: `at most ${NETWORKS_MAX} networks, not ${texts.length}.` };
  }
  const networks = new Set<string>();
  for (const [index, text] of texts.entries()) {
    const network = canonicalNetwork(text);
    if (network === undefined) {
      const reason = `network ${index + 1} is not an address or CIDR such as 203.0.113.0/24.`;
      return { ok: false, reason };
    }
    networks.add(network);
  }
  return { ok: true, networks: [...networks] };
}

function canonicalNetwork(text: string): string | undefined {
  const [address = '', prefix, ...rest] = text.trim().split('/');
  // ipaddr.js also reads octal, hexadecimal and short forms, which others read differently.
  const family = address.includes('%') ? 0 : isIP(address);
  if (family === 0 || rest.length > 0) return undefined;
  const bitsMax = family === 4 ? 32 : 128;
  if (prefix !== undefined && !/^(?:0|[1-9]\d{0,2})$/.test(prefix)) return undefined;
  const bits = prefix === undefined ? bitsMax : Number(prefix);
  if (bits > bitsMax) return undefined;
  if (family === 4) {
    return `${ipaddr.IPv4.networkAddressFromCIDR(`${address}/${bits}`).toString()}/${bits}`;
  }
  const parsed = ipaddr.IPv6.parse(address);
  // A client over IPv4 is seen as IPv4, also by a socket that listens on both.
  if (parsed.isIPv4MappedAddress() && bits >= 96) {
    return canonicalNetwork(`${parsed.toIPv4Address().toString()}/${bits - 96}`);
  }
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/${bits}`).toString()}/${bits}`;
}
