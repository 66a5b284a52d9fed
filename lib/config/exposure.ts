import { isLoopback } from '../http/loopback.ts';
import type { Bind } from './common.ts';
import type { ConfigReader } from './config.ts';
import { withoutCredentials } from './without-credentials.ts';

/** Where customers find the services. */
export type PublicUrls = Readonly<Record<'api' | 'ingest' | 'stream' | 'dedicated', string>>;

/** Who can reach the platform. */
export interface Exposure {
  readonly urls: PublicUrls;
  /** The setting by which other machines can reach the platform; undefined: only this machine can. */
  readonly publicBy: string | undefined;
}

/**
 * Reads the public address of every service, and decides who can reach the platform. A TLS proxy on
 * the same machine leaves all processes on loopback, so the address that a process listens on is
 * not enough: every public address must be of this machine too, and no proxy be trusted. Requests
 * carry keys, passwords and tokens, so addresses for other machines must be https or wss.
 */
export function readExposure(reader: ConfigReader, bind: Pick<Bind, 'publicBy'>): Exposure {
  const settings = {
    api: ['PUBLIC_URL', 'http', 'API_PORT'],
    ingest: ['INGEST_URL', 'http', 'INGEST_PORT'],
    stream: ['STREAM_URL', 'ws', 'STREAM_PORT'],
    dedicated: ['DEDICATED_URL', 'ws', undefined],
  } as const;
  let { publicBy } = bind;
  const read = (service: keyof PublicUrls): string => {
    const [name, scheme, portName] = settings[service];
    const ownPort = portName === undefined ? '{port}' : reader.get(portName);
    const url = reader.get(name) ?? `${scheme}://127.0.0.1:${ownPort}`;
    const reached = checkUrl(reader, name, url, scheme);
    if (reached === 'other machines')
      publicBy ??= `${name} ${withoutCredentials(url)} is an address for other machines`;
    return url;
  };
  const urls = {
    api: read('api'),
    ingest: read('ingest'),
    stream: read('stream'),
    dedicated: read('dedicated'),
  };
  if (/[^\s,]/.test(reader.get('TRUSTED_PROXIES'))) {
    publicBy ??= 'TRUSTED_PROXIES says that a proxy is in front';
  }
  return { urls, publicBy };
}

function checkUrl(
  reader: ConfigReader,
  name: string,
  template: string,
  scheme: 'http' | 'ws',
): 'this machine' | 'other machines' | undefined {
  // The placeholders of DEDICATED_URL, with values that fit a host name and a port.
  const url = template.replaceAll(/\{(?:name|port)\}/g, '1');
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' };
  if (protocol !== `${scheme}:` && protocol !== `${scheme}s:`) {
    reader.fault(
      `${name} must be a URL with ${scheme}s:// or ${scheme}://, not "${withoutCredentials(template)}"`,
    );
    return undefined;
  }
  if (isLoopback(hostname)) return 'this machine';
  if (protocol !== `${scheme}s:`) {
    reader.fault(
      `${name} ${withoutCredentials(template)} must be ${scheme}s unless its host is this machine`,
    );
  }
  return 'other machines';
}
