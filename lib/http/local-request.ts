import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from './loopback.ts';

/** Headers by which a proxy names the client, its own host or itself. */
const FORWARDING = new Set([
  ...['forwarded', 'forwarded-for', 'via', 'cdn-loop', 'client-ip', 'true-client-ip'],
  ...['x-forwarded', 'x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'x-remote-addr'],
  ...['x-original-forwarded-for', 'x-original-host', 'x-envoy-external-address'],
  ...['cf-connecting-ip', 'fastly-client-ip', 'fly-client-ip', 'x-azure-clientip'],
]);

/** The header that shows that a proxy forwarded the request; undefined if no header does. */
export function forwardingHeader(headers: IncomingHttpHeaders): string | undefined {
  for (const name in headers) {
    if (FORWARDING.has(name) || name.startsWith('x-forwarded-')) return name;
  }
  return undefined;
}

/**
 * Whether a Host header names this machine or one of `hostnames`. A browser sends the name in the
 * address bar, so another name that leads here is an attack by DNS (rebinding). Only HTTP/1.0
 * programs send no Host.
 */
export function isLocalHost(host: string | undefined, hostnames: readonly string[] = []): boolean {
  if (host === undefined) return true;
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d*)?$/.exec(host)?.[1];
  return name !== undefined && (isLoopback(name) || hostnames.includes(name.toLowerCase()));
}

/** Whether an Origin header is that of a page of this machine. */
export function isLocalOrigin(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, hostname } = new URL(origin);
  return (protocol === 'http:' || protocol === 'https:') && isLoopback(hostname);
}

/**
 * Whether a web page sent the request: a cross-origin request carries Origin or Sec-Fetch-Site. What
 * a user types into the address bar has `none`.
 */
export function isFromPage({ origin, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
  return origin !== undefined || (site !== undefined && site !== 'none');
}
