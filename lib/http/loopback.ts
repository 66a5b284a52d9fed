import { BlockList, isIP } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/**
 * Whether a host leads only to this machine: `localhost`, or an address of loopback. An IPv6
 * address may be in brackets, as in URLs.
 */
export function isLoopback(host: string): boolean {
  if (host === '127.0.0.1' || host.toLowerCase() === 'localhost') return true;
  const address = host.replace(/^\[(.*:.*)\]$/, '$1');
  const family = isIP(address);
  return family !== 0 && LOOPBACK.check(address, family === 4 ? 'ipv4' : 'ipv6');
}
