import { contentHash } from '../../http/etag.ts';

/**
 * Entity tag of the pills in an answer. Weak (RFC 9110 section 8.8.1), because the same pills may
 * be sent with a later position.
 */
export function pillsEtag(epoch: string, cursors: readonly string[], isList: boolean): string {
  const text = `${epoch}:${cursors.join(',')}`;
  if (!isList) return `W/"${text}"`;
  // A list of cursors has commas, which separate tags in If-None-Match.
  return hashedEtag(text);
}

/** Weak entity tag of a text. */
export function hashedEtag(text: string): string {
  return `W/"${contentHash(text)}"`;
}
