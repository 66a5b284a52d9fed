import type { ConfigReader } from '../../../lib/config/config.ts';
import type { FieldCode } from '../../../schemas/fault.ts';
import { addressKind } from './address-kind.ts';
import { nameFault } from './host-name.ts';
import { type OwnAddresses, readOwnAddresses } from './own-addresses.ts';

/** Which URLs messages may be posted to. */
export interface UrlPolicy {
  /** For development: http and https to loopback, at any port. */
  readonly allowLoopback: boolean;
  /** Allowed ports of https. */
  readonly ports: readonly number[];
  /** Where the platform listens itself. */
  readonly own: OwnAddresses;
}

/** Why a URL is refused: a word for programs, and a sentence for its owner that says what to do. */
export interface UrlFault {
  readonly code: FieldCode;
  readonly detail: string;
}

export type UrlCheck =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly fault: UrlFault };

const PORT_MAX = 65_535;
const LENGTH_MAX = 2_048;

/** Reads WEBHOOK_ALLOW_LOOPBACK, which has no effect once a service is public, and WEBHOOK_PORTS. */
export function readUrlPolicy(reader: ConfigReader): UrlPolicy {
  const own = readOwnAddresses(reader);
  const ports = reader.get('WEBHOOK_PORTS').split(/\s*,\s*/);
  if (!ports.every((port) => /^[1-9]\d{0,4}$/.test(port) && Number(port) <= PORT_MAX)) {
    reader.fault('WEBHOOK_PORTS must be ports separated by commas, such as 443,8443');
  }
  const loopback = reader.get('WEBHOOK_ALLOW_LOOPBACK');
  return { allowLoopback: loopback === 'true' && !own.isPublic, ports: ports.map(Number), own };
}

/** Whether the spelling of a host (as in `URL.hostname`) alone means this machine. */
export function isLoopbackHost(hostname: string): boolean {
  return isLocalName(hostname) || addressKind(withoutBrackets(hostname)) === 'loopback';
}

/** `localhost` and its subdomains: RFC 6761 reserves them for loopback, so DNS is not asked. */
export function isLocalName(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost');
}

/** `URL.hostname` without the brackets of IPv6. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/**
 * Checks a URL by its text alone, without DNS; the addresses of its name are vetted later. The host
 * must be spelt as the URL standard serialises it: every other spelling of an address (`127.1`,
 * `0x7f.1`, `%31`, full-width digits) is refused before another parser can read it differently.
 */
export function checkUrl(text: string, policy: UrlPolicy): UrlCheck {
  if (text.length > LENGTH_MAX) {
    return refuse('url_too_long', `The URL must have at most ${LENGTH_MAX} characters.`);
  }
  // The standard drops tabs and line breaks and reads "\" as "/"; other parsers do not.
  if (!/^[\x21-\x7e]+$/.test(text) || text.includes('\\')) {
    return refuse(
      'url_characters',
      'The URL must be printable ASCII without spaces and backslashes. ' +
        'Percent-encode its path, and write an international name in its xn-- form.',
    );
  }
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1];
  if (authority === undefined || !URL.canParse(text)) {
    return refuse('url_invalid', 'The URL must be complete, e.g. https://example.com/hook.');
  }
  const url = new URL(text);
  if (authority.includes('@')) {
    return refuse(
      'url_credentials',
      'Remove user and password from the URL. Use a custom header instead.',
    );
  }
  if (text.includes('#')) return refuse('url_fragment', 'Remove the fragment (#…) from the URL.');
  const spelling = /^(.*?)(?::[1-9]\d*)?$/.exec(authority)?.[1] ?? '';
  if (spelling.toLowerCase() !== url.hostname) {
    return refuse(
      'url_host_spelling',
      'Write the host of the URL in its canonical form: a name, four decimal numbers, or the ' +
        'shortest form of IPv6, and a port without leading zeros.',
    );
  }
  const fault = hostFault(url, policy);
  return fault === undefined ? { ok: true, url } : { ok: false, fault };
}

function hostFault(url: URL, policy: UrlPolicy): UrlFault | undefined {
  const port = portOf(url);
  if (policy.allowLoopback && isLoopbackHost(url.hostname)) return ownPortFault(port, policy);
  if (url.protocol !== 'https:') return { code: 'url_scheme', detail: 'The URL must use https.' };
  if (policy.own.hosts.has(url.hostname)) {
    const detail = `${url.hostname} is an address of the platform itself. Use a server of yours.`;
    return { code: 'url_own_host', detail };
  }
  if (!policy.ports.includes(port)) {
    const ports = policy.ports.join(', ');
    return { code: 'url_port', detail: `The port of the URL must be one of ${ports}.` };
  }
  const address = withoutBrackets(url.hostname);
  const isLiteral = address !== url.hostname || /^[\d.]+$/.test(address);
  if (!isLiteral) {
    const detail = nameFault(url.hostname);
    return detail === undefined ? undefined : { code: 'url_host_name', detail };
  }
  if (addressKind(address) === 'public') return undefined;
  return {
    code: 'url_address',
    detail: `The address ${address} is not public. Use a public address or a host name.`,
  };
}

/** The port of a URL, also if it is the default. */
export function portOf({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number {
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

/** The fault of a port of this machine at which the platform listens. */
export function ownPortFault(port: number, { own }: UrlPolicy): UrlFault | undefined {
  if (!own.ports.has(port)) return undefined;
  const detail = `Port ${port} of this machine belongs to the platform. Use another port.`;
  return { code: 'url_own_port', detail };
}

function refuse(code: FieldCode, detail: string): UrlCheck {
  return { ok: false, fault: { code, detail } };
}
