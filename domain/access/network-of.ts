import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The smallest network that a customer gets: one IPv6 address usually comes with 2^64. */
const V6_BITS = 64;

/**
 * The network that attempts from an address are counted for: an IPv4 address itself, or the /64 of an
 * IPv6 address. An IPv4-mapped address counts as IPv4; other text is returned as it is.
 */
export function networkOf(address: string): string {
  const [text] = address.split('%', 1) as [string];
  if (isIP(text) === 0) return address.slice(0, 64);
  const parsed = ipaddr.process(text);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${V6_BITS}`);
  return `${network.toString()}/${V6_BITS}`;
}
