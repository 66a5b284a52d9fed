/** The origin of a request that may begin a session. */
export interface Visitor {
  readonly address: string;
  /** As `shortUserAgent` returns it. */
  readonly userAgent?: string | undefined;
}

/** Characters of a User-Agent that are kept. */
export const USER_AGENT_CHARS_MAX = 120;

/** The start of a User-Agent header, in printable ASCII: the text is shown in lists and mails. */
export function shortUserAgent(header: string | undefined): string {
  return (header ?? '').slice(0, USER_AGENT_CHARS_MAX).replaceAll(/[^ -~]/g, '?');
}
