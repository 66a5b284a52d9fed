/**
 * What may be told of a customer's URL in logs, mails and events: paths and queries may hold
 * credentials.
 */
export function originOf(url: string): string {
  return new URL(url).origin;
}
