import { ConfigError, type ConfigReader } from '../config.ts';
import { addressKind } from './address-kind.ts';
import { nameFault } from './host-name.ts';

/** What URLs may be posted to. */
export interface UrlPolicy {
  /** In development: http and https to loopback, at any port. */
  readonly allowLoopback: boolean;
  /** Ports of https. */
  readonly ports: readonly number[];
}

/** Why a URL is refused: a word for programs, and a sentence for its owner that says what to do. */
export interface UrlFault {
  readonly code: string;
  readonly detail: string;
}

export type UrlVerdict =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly fault: UrlFault };

const PORTS = '443,8443';
const PORT_MAX = 65_535;
const LENGTH_MAX = 2_048;

/**
 * Reads WEBHOOK_ALLOW_LOOPBACK and WEBHOOK_PORTS.
 * @throws ConfigError when a port is none
 */
export function readUrlPolicy(reader: ConfigReader): UrlPolicy {
  const ports = reader.text('WEBHOOK_PORTS', PORTS).split(/\s*,\s*/);
  if (!ports.every((port) => /^[1-9]\d{0,4}$/.test(port) && Number(port) <= PORT_MAX)) {
    throw new ConfigError(`WEBHOOK_PORTS must be ports separated by commas, such as ${PORTS}.`);
  }
  return {
    allowLoopback: reader.choice('WEBHOOK_ALLOW_LOOPBACK', ['true', 'false'], 'false') === 'true',
    ports: ports.map(Number),
  };
}

/** Whether a host (as in `URL.hostname`) is this machine by its mere spelling. */
export function isLoopbackHost(hostname: string): boolean {
  return isLocalName(hostname) || addressKind(bare(hostname)) === 'loopback';
}

/** `localhost` and what is below it: RFC 6761 keeps them for loopback, so that no DNS is asked. */
export function isLocalName(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost');
}

/** `URL.hostname` without the brackets of IPv6. */
export function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/**
 * Judges a URL by its text alone, without DNS; names are judged again by what they resolve to.
 * The host must be written the way the URL standard writes it: every other spelling of an address
 * (`127.1`, `0x7f.1`, `%31`, full-width digits) is refused before anybody can read it another way.
 */
export function checkUrl(text: string, policy: UrlPolicy): UrlVerdict {
  if (text.length > LENGTH_MAX) {
    return refuse('url_too_long', `The URL must have at most ${LENGTH_MAX} characters.`);
  }
  // The standard drops tabs and line breaks and reads "\" as "/": other readers do not.
  if (!/^[\x21-\x7e]+$/.test(text) || text.includes('\\')) {
    return refuse(
      'url_characters',
      'The URL must be printable ASCII without spaces and backslashes: ' +
        'percent-encode its path, and write an international name in its xn-- form.',
    );
  }
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1];
  if (authority === undefined || !URL.canParse(text)) {
    return refuse(
      'url_invalid',
      'The URL must be a complete one, such as https://example.com/hook.',
    );
  }
  const url = new URL(text);
  if (authority.includes('@')) {
    return refuse('url_credentials', 'Leave user and password out of the URL: use a header.');
  }
  if (text.includes('#')) return refuse('url_fragment', 'Leave the part after # out of the URL.');
  const spelling = /^(.*?)(?::[1-9]\d*)?$/.exec(authority)?.[1] ?? '';
  if (spelling.toLowerCase() !== url.hostname) {
    return refuse(
      'url_host_spelling',
      'Write the host of the URL in its usual spelling: a name, four decimal numbers, or the ' +
        'shortest form of IPv6, and a port without leading zeros.',
    );
  }
  const fault = hostFault(url, policy);
  return fault === undefined ? { ok: true, url } : { ok: false, fault };
}

function hostFault(url: URL, policy: UrlPolicy): UrlFault | undefined {
  if (policy.allowLoopback && isLoopbackHost(url.hostname)) return undefined;
  if (url.protocol !== 'https:') return { code: 'url_scheme', detail: 'The URL must be https.' };
  const port = Number(url.port || 443);
  if (!policy.ports.includes(port)) {
    const ports = policy.ports.join(', ');
    return { code: 'url_port', detail: `The port of the URL must be one of ${ports}.` };
  }
  const address = bare(url.hostname);
  const isLiteral = address !== url.hostname || /^[\d.]+$/.test(address);
  if (!isLiteral) {
    const detail = nameFault(url.hostname);
    return detail === undefined ? undefined : { code: 'url_host_name', detail };
  }
  if (addressKind(address) === 'public') return undefined;
  return {
    code: 'url_address',
    detail: `The address ${address} is not of the public internet. Use one that is, or a name.`,
  };
}

function refuse(code: string, detail: string): UrlVerdict {
  return { ok: false, fault: { code, detail } };
}
