import { createHash } from 'node:crypto';

/** The opaque part of an entity tag: 132 bits of the SHA-256 of a content. */
export function contentHash(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('base64url').slice(0, 22);
}

/**
 * Whether If-None-Match names the tag, by weak comparison (RFC 9110 section 13.1.2).
 * @param etag without a comma
 */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = opaqueOf(etag);
  return ifNoneMatch.split(',').some((tag) => opaqueOf(tag.trim()) === opaque);
}

const opaqueOf = (tag: string) => tag.replace(/^W\//, '');
