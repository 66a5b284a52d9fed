import { createHash } from 'node:crypto';

/**
 * Entity tag of the pills in an answer. Weak (RFC 9110 section 8.8.1): the same pills may come
 * with a later position.
 */
export function pillsEtag(epoch: string, cursors: readonly string[], isList: boolean): string {
  const text = `${epoch}:${cursors.join(',')}`;
  if (!isList) return `W/"${text}"`;
  return hashedEtag(text);
}

/** Weak entity tag of a text: 132 bits of its SHA-256. */
export function hashedEtag(text: string): string {
  return `W/"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
}

/** Whether If-None-Match names the tag, by weak comparison (RFC 9110 section 13.1.2). */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = etag.slice(2);
  // Our tags hold commas only between cursors, and those are hashed: a split is exact.
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === opaque);
}
