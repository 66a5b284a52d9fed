/**
 * The part of a customer's URL that may appear in logs, mails and events: paths and queries may
 * hold credentials.
 */
export function originOf(url: string): string {
  return new URL(url).origin;
}

/** Path segments of this length may be credentials, as in the hook URLs of chat services. */
const CREDENTIAL_CHARS_MIN = 20;

/** The URL for readers who may not use it: queries and long path segments become `***`. */
export function redactedUrl(text: string): string {
  const url = new URL(text);
  const segments = url.pathname.split('/');
  const isBare = segments.every((segment) => segment.length < CREDENTIAL_CHARS_MIN);
  if (isBare && url.search === '' && url.username === '' && url.password === '') return text;
  const path = segments.map((one) => (one.length < CREDENTIAL_CHARS_MIN ? one : '***')).join('/');
  return `${url.origin}${path}${url.search === '' ? '' : '?***'}`;
}
