import net from 'node:net';
import ipaddr from 'ipaddr.js';

/** `refused`: not of the public internet, or an address that embeds another one. */
export type AddressKind = 'public' | 'loopback' | 'refused';

/**
 * IPv4 addresses that the library counts as unicast, but that no server on the internet has.
 * 168.63.129.16 is the host of every virtual machine at Azure: metadata and its agent.
 */
const IPV4_REFUSED = ['168.63.129.16/32'].map((net) => ipaddr.IPv4.parseCIDR(net));

/** RFC 4291: all global addresses are in this range, whatever else the library calls unicast. */
const IPV6_GLOBAL = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Special-purpose ranges within 2000::/3 (RFC 6890 registry), and tunnels that hide an IPv4
 * address.
 */
const IPV6_REFUSED = [
  '2001::/23', // IETF protocol assignments, Teredo among them
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation, RFC 9637
].map((net) => ipaddr.IPv6.parseCIDR(net));

/**
 * Classifies an address in the plain spelling of `net.isIP`; any other text, or an address with a
 * zone, is refused. Nothing is unwrapped: an IPv6 address that embeds an IPv4 one (mapped,
 * compatible, NAT64, 6to4, Teredo) is refused whatever it embeds, because its destination depends
 * on translators in our network.
 */
export function addressKind(text: string): AddressKind {
  if (net.isIPv4(text)) return ipv4Kind(ipaddr.IPv4.parse(text));
  if (net.isIPv6(text) && !text.includes('%')) return ipv6Kind(ipaddr.IPv6.parse(text));
  return 'refused';
}

function ipv4Kind(address: ipaddr.IPv4): AddressKind {
  const range = address.range();
  if (range === 'loopback') return 'loopback';
  if (range !== 'unicast') return 'refused';
  return IPV4_REFUSED.some((net) => address.match(net)) ? 'refused' : 'public';
}

function ipv6Kind(address: ipaddr.IPv6): AddressKind {
  const range = address.range();
  if (range === 'loopback') return 'loopback';
  if (range !== 'unicast' || !address.match(IPV6_GLOBAL)) return 'refused';
  return IPV6_REFUSED.some((net) => address.match(net)) ? 'refused' : 'public';
}
