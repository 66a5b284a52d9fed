import { type ProblemAnswer, problemAnswer } from '../../http/problems.ts';

/** Any path but the stream's, /health and /ready. */
export const notFound = (): ProblemAnswer => problemAnswer('not_found');

/**
 * The stream's path, asked for without a handshake, or with one of another version (RFC 9110
 * section 15.5.22, RFC 6455 section 4.4).
 */
export const upgradeRequired = (): ProblemAnswer =>
  problemAnswer('upgrade_required', {}, { upgrade: 'websocket', 'sec-websocket-version': '13' });

/** More handshakes a second than the process takes. */
export const tooManyOpens = (): ProblemAnswer =>
  problemAnswer('connection_flood', { retry_after_s: 1 });

/** /health and /ready. */
export function stateAnswer(notReady: string | undefined): ProblemAnswer {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  if (notReady === undefined) return { status: 200, headers, body: '{"status":"ready"}' };
  return { status: 503, headers, body: JSON.stringify({ status: 'not_ready', reason: notReady }) };
}
