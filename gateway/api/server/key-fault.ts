import type { IncomingHttpHeaders } from 'node:http';
import type { Identified } from '../../../domain/access/account-access.ts';
import { KEY_PREFIX } from '../../../domain/access/key-format.ts';
import type { ProblemCode } from '../../http/problem-catalogue.ts';

type KeyFault = Extract<Identified, { kind: 'refused' }>['fault'];

/** Names under which other APIs take a key in the URL. */
const NAMES: ReadonlySet<string> = new Set([
  ...['key', 'apikey', 'api_key', 'api-key', 'x-api-key', 'token', 'access_token'],
]);

/**
 * The problem of a request without an accepted key. Where and how the key was sent is told apart,
 * since the client knows that itself; unknown, revoked and expired keys get one answer.
 */
export function keyProblem(
  fault: KeyFault,
  { url = '', headers }: { readonly url?: string | undefined; headers: IncomingHttpHeaders },
): ProblemCode {
  const header = headers['x-api-key'];
  if (fault === 'malformed' && header !== '') {
    return /^\s*(?:bearer|basic)\b/i.test(String(header)) ? 'key_scheme_wrong' : 'key_malformed';
  }
  if (fault !== 'missing' && fault !== 'malformed') return 'key_invalid';
  if (isKeyInUrl(url)) return 'key_in_url';
  return headers.authorization === undefined ? 'key_missing' : 'key_scheme_wrong';
}

function isKeyInUrl(url: string): boolean {
  const at = url.indexOf('?');
  if (at < 0) return false;
  const pairs = [...new URLSearchParams(url.slice(at))];
  return pairs.some(([name, value]) => NAMES.has(name.toLowerCase()) || value.includes(KEY_PREFIX));
}
