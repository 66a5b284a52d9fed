import { PilloleError } from '../../../../sdk/browser.ts';

/** If the API hangs, the request ends after this time, and the stream's client tries again. */
const TICKET_MAX_MS = 5_000;

/** Settings of the page, from the API. */
export interface Settings {
  readonly stream_url: string;
  /** Whether everyone may watch the market of the demo account. */
  readonly demo: boolean;
  /** Whether the browser sent a session; scripts cannot see the cookie. */
  readonly has_session: boolean;
}

/** @throws if the API does not answer, or not with 2xx */
export async function readSettings(signal: AbortSignal): Promise<Settings> {
  const answer = await fetch('/console/settings', { signal });
  if (!answer.ok) throw new Error(`The API answered ${answer.status}.`);
  return (await answer.json()) as Settings;
}

/** As whom the page watches. */
export type Viewer =
  | { readonly kind: 'demo' }
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'session'; readonly csrfToken: string };

/**
 * A given key, else the demo, else the person who signed in to the console.
 * @returns undefined if there is none of them
 * @throws if the API does not answer
 */
export async function findViewer(
  { demo, has_session: hasSession }: Settings,
  key: string | undefined,
): Promise<Viewer | undefined> {
  if (key !== undefined) return { kind: 'key', key };
  if (demo) return { kind: 'demo' };
  if (!hasSession) return undefined;
  const answer = await fetch('/api/session', { signal: AbortSignal.timeout(TICKET_MAX_MS) });
  if (answer.status === 401) return undefined;
  if (!answer.ok) throw new Error(`The API answered ${answer.status}.`);
  const { csrf_token: csrfToken } = (await answer.json()) as { readonly csrf_token: string };
  return { kind: 'session', csrfToken };
}

/** What a viewer sends with a request to the API. */
export function headersOf(viewer: Viewer): Readonly<Record<string, string>> {
  switch (viewer.kind) {
    case 'demo':
      return {};
    case 'key':
      return { 'x-api-key': viewer.key };
    case 'session':
      return { 'x-csrf-token': viewer.csrfToken };
  }
}

/**
 * A ticket for one socket of the viewer.
 * @throws PilloleError that says whether to try again; another error if no answer comes within 5 s
 */
export async function readTicket(viewer: Viewer): Promise<string> {
  const path = viewer.kind === 'demo' ? '/api/stream/demo-tickets' : '/api/stream/tickets';
  const answer = await fetch(path, {
    method: 'POST',
    headers: headersOf(viewer),
    signal: AbortSignal.timeout(TICKET_MAX_MS),
  });
  const body = (await answer.json().catch(() => ({}))) as {
    readonly ticket?: string;
    readonly title?: string;
    readonly code?: string;
    readonly retry?: 'never' | 'after' | 'check';
    readonly retry_after_s?: number;
    readonly request_id?: string;
  };
  const request = body.request_id === undefined ? '' : ` Request ${body.request_id}.`;
  if (answer.status === 201 && body.ticket !== undefined) return body.ticket;
  throw new PilloleError({
    code: body.code ?? `http_${answer.status}`,
    message: `The API refused a ticket: ${body.title ?? `HTTP ${answer.status}`}.${request}`,
    status: answer.status,
    retry: body.retry === 'never' ? 'never' : 'after',
    retryAfterMs: (body.retry_after_s ?? 0) * 1_000,
  });
}
