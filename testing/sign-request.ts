import { createHash, createHmac, type KeyObject, randomBytes, sign } from 'node:crypto';

/** A key of a client, by algorithm of RFC 9421. */
export type SigningKey =
  | { readonly algorithm: 'ed25519' | 'ecdsa-p256-sha256'; readonly privateKey: KeyObject }
  | { readonly algorithm: 'hmac-sha256'; readonly secret: Buffer };

export interface SignOptions {
  readonly method: string;
  readonly url: string;
  readonly keyId: string;
  readonly key: SigningKey;
  readonly body?: string | undefined;
  /** Unix s. */
  readonly created?: number;
  readonly nonce?: string;
  readonly label?: string;
  /** By default what the platform demands. */
  readonly components?: readonly string[];
  /** Further parameters as they stand, e.g. `;alg="ed25519"`. */
  readonly more?: string;
  /** Values of covered headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Signs a request by hand, from the text of RFC 9421, so that the tests do not share the library of
 * the platform. @returns the headers to send
 */
export function signRequest(of: SignOptions): Record<string, string> {
  const { method, url, body, headers = {}, label = 'sig1' } = of;
  const digest =
    body === undefined
      ? undefined
      : `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
  const sent: Record<string, string> = {
    ...headers,
    ...(digest === undefined ? {} : { 'content-digest': digest }),
  };
  const covered = of.components ?? [
    ...['@method', '@target-uri'],
    ...(digest === undefined ? [] : ['content-digest']),
  ];
  const created = of.created ?? Math.floor(Date.now() / 1_000);
  const nonce = of.nonce ?? randomBytes(18).toString('base64');
  const list = covered.map((name) => `"${name}"`).join(' ');
  const input = `(${list});created=${created};keyid="${of.keyId}";nonce="${nonce}"${of.more ?? ''}`;
  const { pathname, search } = new URL(url);
  const values: Readonly<Record<string, string | undefined>> = {
    '@method': method,
    '@target-uri': url,
    '@path': pathname,
    '@query': search === '' ? '?' : search,
    ...sent,
  };
  const lines = covered.map((name) => `"${name}": ${values[name]}`);
  const base = [...lines, `"@signature-params": ${input}`].join('\n');
  const signature = signBase(of.key, Buffer.from(base)).toString('base64');
  return {
    ...sent,
    'signature-input': `${label}=${input}`,
    signature: `${label}=:${signature}:`,
  };
}

function signBase(key: SigningKey, base: Buffer): Buffer {
  if (key.algorithm === 'hmac-sha256')
    return createHmac('sha256', key.secret).update(base).digest();
  if (key.algorithm === 'ed25519') return sign(null, base, key.privateKey);
  return sign('sha256', base, { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
}
