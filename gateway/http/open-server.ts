import type { IncomingHttpHeaders } from 'node:http';
import { forwardingHeader, isFromPage, isLocalHost } from '../../lib/http/local-request.ts';
import { isOriginAllowed } from './origins.ts';
import type { Refusal } from './problems.ts';

/** What a server refuses while it is open: without credentials, or with free tiers. */
export interface OpenRule {
  /** Whose web pages may call it: none, or those of this machine and of these origins. */
  readonly pages: 'none' | { readonly origins: readonly string[] };
  /** Its names besides those of this machine; undefined: any name, as on a private network. */
  readonly hostnames: readonly string[] | undefined;
}

/**
 * Refuses a request that shows that others than the users of this machine reach an open server:
 * through a proxy in front, by another name (DNS rebinding), or from a foreign web page.
 * @returns undefined if the request may pass
 */
export function openServerRefusal(
  headers: IncomingHttpHeaders,
  { pages, hostnames }: OpenRule,
): Refusal | undefined {
  const forwarding = forwardingHeader(headers);
  if (forwarding !== undefined) return refusal('proxy_refused', forwarding);
  if (hostnames !== undefined && !isLocalHost(headers.host, hostnames)) {
    return refusal('local_only', 'host');
  }
  const { origin } = headers;
  if (pages !== 'none') {
    const isForeign = origin === '' || !isOriginAllowed(origin ?? '', pages.origins);
    return isForeign ? refusal('local_only', 'origin') : undefined;
  }
  if (!isFromPage(headers)) return undefined;
  return refusal('local_only', origin === undefined ? 'sec-fetch-site' : 'origin');
}

function refusal(code: 'proxy_refused' | 'local_only', header: string): Refusal {
  return [code, { detail: `The request is refused because of its header ${header}.` }];
}
