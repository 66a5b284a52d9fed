import { PilloleError } from '../../../../sdk/browser.ts';

/** If the API hangs, the request ends after this time, and the stream's client tries again. */
const TICKET_MAX_MS = 5_000;

/** Settings of the page, from the API. */
export interface Settings {
  readonly stream_url: string;
  /** Whether everyone may watch the market of the demo account. */
  readonly demo: boolean;
}

/** @throws if the API does not answer, or not with 2xx */
export async function readSettings(signal: AbortSignal): Promise<Settings> {
  const answer = await fetch('/console/settings', { signal });
  if (!answer.ok) throw new Error(`The API answered ${answer.status}.`);
  return (await answer.json()) as Settings;
}

/**
 * A ticket for one socket of the demo account.
 * @throws PilloleError that says whether to try again; another error if no answer comes within 5 s
 */
export async function demoTicket(): Promise<string> {
  const answer = await fetch('/api/stream/demo-tickets', {
    method: 'POST',
    signal: AbortSignal.timeout(TICKET_MAX_MS),
  });
  const body = (await answer.json().catch(() => ({}))) as {
    readonly ticket?: string;
    readonly title?: string;
    readonly code?: string;
    readonly retry?: 'never' | 'after' | 'check';
    readonly retry_after_s?: number;
  };
  if (answer.status === 201 && body.ticket !== undefined) return body.ticket;
  throw new PilloleError({
    code: body.code ?? `http_${answer.status}`,
    message: `The API refused a ticket: ${body.title ?? `HTTP ${answer.status}`}.`,
    status: answer.status,
    retry: body.retry === 'never' ? 'never' : 'after',
    retryAfterMs: (body.retry_after_s ?? 0) * 1_000,
  });
}
