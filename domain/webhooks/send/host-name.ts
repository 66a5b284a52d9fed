/**
 * Suffixes that are not of the public DNS: reserved by RFCs 6761, 6762, 7686, 8375 and 9476 or by
 * ICANN (internal, home, corp, mail), or used inside networks by convention. Cloud providers put
 * metadata below `internal`, clusters their services below `local`.
 */
const PRIVATE_SUFFIXES = [
  'localhost',
  'local',
  'localdomain',
  'internal',
  'intranet',
  'private',
  'corp',
  'home',
  'lan',
  'mail',
  'home.arpa',
  'in-addr.arpa',
  'ip6.arpa',
  'onion',
  'alt',
  'invalid',
];

/** The fault of a host name, spelt as in `URL.hostname`, as a sentence. */
export function nameFault(hostname: string): string | undefined {
  const labels = hostname.split('.');
  if (
    labels.length < 2 ||
    PRIVATE_SUFFIXES.some((suffix) => `.${hostname}`.endsWith(`.${suffix}`))
  ) {
    return `${hostname} is not a public internet name. Use a host name that public DNS resolves.`;
  }
  const isName = labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label));
  if (isName && hostname.length <= 253) return undefined;
  return 'The host name may contain only letters, digits, hyphens, underscores and dots.';
}
