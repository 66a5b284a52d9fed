import ipaddr from 'ipaddr.js';

type Network = readonly [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number];

/** Networks that a key may be used from, parsed once; undefined = any. */
export type AllowList = readonly Network[] | undefined;

/** Bits before the IPv4 address in ::ffff:0:0/96 (RFC 4291, section 2.5.5.2). */
const MAPPED_BITS = 96;

/**
 * Parses an allow-list. An invalid entry allows nothing: a list of only invalid entries allows no
 * address, never every address.
 * @param cidrs as stored, IPv4 or IPv6; empty = any address
 */
export function parseAllowList(cidrs: readonly string[]): AllowList {
  if (cidrs.length === 0) return undefined;
  return cidrs.filter((cidr) => ipaddr.isValidCIDR(cidr)).map(parseNetwork);
}

/** Whether an address is in the list; an IPv4-mapped IPv6 address counts as its IPv4 address. */
export function isAllowed(list: AllowList, address: string): boolean {
  if (list === undefined) return true;
  if (!ipaddr.isValid(address)) return false;
  const client = ipaddr.process(address);
  return list.some(([network, bits]) => {
    return network.kind() === client.kind() && client.match(network, bits);
  });
}

function parseNetwork(cidr: string): Network {
  const [address, bits] = ipaddr.parseCIDR(cidr);
  const isMapped =
    address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= MAPPED_BITS;
  return isMapped ? [address.toIPv4Address(), bits - MAPPED_BITS] : [address, bits];
}
