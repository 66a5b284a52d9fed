import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { contentHash, matchesEtag } from './etag.ts';

/** How often clients ask again, s. Without an ETag match they get the whole document. */
const MAX_AGE_S = 300;

/** A JSON document as it is sent: compressed as the client accepts it, or not at all. */
export interface DocumentAnswer {
  readonly status: 200 | 304;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty for 304. */
  readonly body: Buffer;
}

/**
 * Prepares a document that does not change: compressed once, with a strong ETag for each encoding
 * (RFC 9110 section 8.8.3). @returns a function of the request's headers
 */
export function prepareDocument(value: unknown) {
  const plain = Buffer.from(JSON.stringify(value));
  const hash = contentHash(plain);
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
  // In the order of preference.
  const encodings = [
    { name: 'br', body: brotliCompressSync(plain, quality) },
    { name: 'gzip', body: gzipSync(plain) },
    { name: 'identity', body: plain },
  ] as const;
  const tagOf = (name: string) => `"${hash}-${name}"`;
  return (headers: {
    readonly 'accept-encoding'?: string | string[] | undefined;
    readonly 'if-none-match'?: string | undefined;
  }): DocumentAnswer => {
    const accepted = acceptedEncodings(String(headers['accept-encoding'] ?? ''));
    const { name, body } = encodings.find((one) => accepted.has(one.name)) ?? encodings[2];
    const etag = tagOf(name);
    const caching = {
      etag,
      vary: 'Accept-Encoding',
      'cache-control': `public, max-age=${MAX_AGE_S}`,
    };
    if (matchesEtag(headers['if-none-match'], etag)) {
      return { status: 304, headers: caching, body: Buffer.alloc(0) };
    }
    const encoding = name === 'identity' ? {} : { 'content-encoding': name };
    const type = { 'content-type': 'application/json; charset=utf-8' };
    return { status: 200, headers: { ...caching, ...type, ...encoding }, body };
  };
}

/** The encodings of an Accept-Encoding header that the client does not refuse by `q=0`. */
function acceptedEncodings(header: string): ReadonlySet<string> {
  const members = header.split(',').map((member) => member.trim().toLowerCase());
  const accepted = members.filter((member) => !/;\s*q=0(?:\.0*)?$/.test(member));
  return new Set(accepted.map((member) => member.split(';', 1)[0]!.trim()));
}
