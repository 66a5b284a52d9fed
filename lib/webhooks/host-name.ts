/**
 * Ends of names that are no names of the public DNS: kept by RFCs 6761, 6762, 7686, 8375 and 9476,
 * by ICANN (internal, home, corp, mail), or used inside networks by habit. `internal` is where
 * cloud providers put metadata, `local` where clusters put their services.
 */
const PRIVATE_ENDS = [
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

/** What is wrong with a host name as such, in the spelling of `URL.hostname`: a sentence. */
export function nameFault(hostname: string): string | undefined {
  const labels = hostname.split('.');
  if (labels.length < 2 || PRIVATE_ENDS.some((end) => `.${hostname}`.endsWith(`.${end}`))) {
    return `${hostname} is not a name of the public internet. Use one that is.`;
  }
  const isName = labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label));
  if (isName && hostname.length <= 253) return undefined;
  return 'The host of the URL must be a name of letters, digits, hyphens and dots.';
}
