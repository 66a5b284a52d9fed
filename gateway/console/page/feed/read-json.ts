import { PilloleError, type Problem } from '../../../../sdk/browser.ts';

const ANSWER_MAX_MS = 10_000;

/**
 * Reads JSON of the API.
 * @throws PilloleError with the problem of a refusal, whose title is the message; another error if
 * no answer comes within 10 s
 */
export async function readJson(
  path: string,
  query: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<unknown> {
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`, {
    headers,
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MAX_MS)]),
  });
  const body: unknown = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  const problem = body as Problem;
  throw new PilloleError({
    code: problem.code ?? `http_${answer.status}`,
    message: problem.title ?? `HTTP ${answer.status}`,
    status: answer.status,
    retry: problem.retry,
    problem,
  });
}
