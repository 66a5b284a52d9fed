import type { ConfigReader } from '../../../lib/config/config.ts';
import { openResolver, type Resolver, readDnsServers } from './resolve.ts';
import { readUrlPolicy, type UrlPolicy } from './url-policy.ts';

/** An HTTP proxy through which all messages leave, by CONNECT. */
export interface EgressProxy {
  readonly origin: string;
  /** Value of Proxy-Authorization, if the URL has credentials. */
  readonly authorization: string | undefined;
  /**
   * Whether the proxy resolves names. If so, we vet only literals and the text of URLs, and the
   * proxy must refuse private addresses. Otherwise we ask for addresses that we have vetted.
   */
  readonly resolvesNames: boolean;
}

/** How messages leave the platform. */
export interface Egress {
  readonly policy: UrlPolicy;
  readonly resolver: Resolver;
  readonly proxy?: EgressProxy | undefined;
}

/**
 * Reads where messages may go, and how: see `readUrlPolicy`, `readDnsServers`, `readProxy`. Through a
 * proxy, loopback would be the proxy's own machine, so it is refused.
 */
export function readEgress(reader: ConfigReader): Egress {
  const proxy = readProxy(reader);
  const policy = readUrlPolicy(reader);
  return {
    policy: proxy === undefined ? policy : { ...policy, allowLoopback: false },
    resolver: openResolver({ servers: readDnsServers(reader) }),
    proxy,
  };
}

/** Reads WEBHOOK_EGRESS_PROXY and WEBHOOK_EGRESS_DNS. The message never repeats the URL. */
function readProxy(reader: ConfigReader): EgressProxy | undefined {
  const text = reader.get('WEBHOOK_EGRESS_PROXY');
  const dns = reader.get('WEBHOOK_EGRESS_DNS');
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isBare = url?.pathname === '/' && url.search === '' && url.hash === '';
  if (url === undefined || !/^https?:$/.test(url.protocol) || !isBare) {
    reader.fault(
      'WEBHOOK_EGRESS_PROXY must be a URL such as http://proxy.internal:4750, with user and ' +
        'password in front of the host if the proxy asks for them',
    );
    return undefined;
  }
  return { origin: url.origin, authorization: basic(url), resolvesNames: dns === 'proxy' };
}

/** RFC 7617. */
function basic({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const pair = [username, password].map(unescaped).join(':');
  return `Basic ${Buffer.from(pair, 'utf8').toString('base64')}`;
}

/** A password may contain a % that escapes nothing. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
