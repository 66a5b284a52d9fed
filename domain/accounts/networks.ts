import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Networks per key: every call compares all of them. */
export const NETWORKS_MAX = 64;

/**
 * Parses networks, v4 or v6, with or without a prefix length: host bits become zero, the text becomes
 * canonical (RFC 5952), duplicates are dropped. The reason names the index, not the text.
 */
export function canonicalNetworks(
  texts: readonly string[],
):
  | { readonly ok: true; readonly networks: readonly string[] }
  | { readonly ok: false; readonly reason: string } {
  if (texts.length > NETWORKS_MAX) {
    return {
      ok: false,
      reason: `must have at most ${NETWORKS_MAX} networks, not ${texts.length}.`,
    };
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

/** @throws when the networks were not checked before */
export function networksOf(texts: readonly string[]): string[] {
  const read = canonicalNetworks(texts);
  if (!read.ok) throw new Error(`networks were not checked: ${read.reason}`);
  return [...read.networks];
}

function canonicalNetwork(text: string): string | undefined {
  const [address = '', prefix, ...rest] = text.trim().split('/');
  // ipaddr.js also accepts octal, hexadecimal and short forms, which other parsers read differently.
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
  // A client over IPv4 counts as IPv4, even on a dual-stack socket.
  if (parsed.isIPv4MappedAddress() && bits >= 96) {
    return canonicalNetwork(`${parsed.toIPv4Address().toString()}/${bits - 96}`);
  }
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/${bits}`).toString()}/${bits}`;
}
