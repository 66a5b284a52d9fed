import type { PilloleError } from '../error.ts';
import { formatAge, printable } from './table.ts';

/** An error as a program reads it, in the contract's spelling. */
export function failureJson(error: PilloleError): object {
  return {
    code: error.code,
    message: error.message,
    status: error.status,
    retry: error.retry,
    retry_after_ms: error.retryAfterMs,
    request_id: error.problem?.request_id,
    close_code: error.closeCode,
    position: error.position,
  };
}

/** What to do about a code, where the message does not say it. */
const HINTS: Readonly<Record<string, string>> = {
  key_missing: 'Set PILLOLE_KEY, or give --key-file.',
  key_invalid: 'Check PILLOLE_KEY or --key-file: the key is unknown, revoked or expired.',
  tier_too_low: 'Streams come with Pro and Institutional; `pillole latest` works with every plan.',
  network: 'Is the address right, and does the platform run?',
  connection_lost: 'Is the address right, and does the platform run?',
  endpoint_unavailable: 'This version of the platform does not serve it yet.',
};

/** An error as a person reads it: what, what to do, how long to wait. @returns its lines */
export function failureLines(error: PilloleError): string[] {
  const { code, message, retryAfterMs, problem } = error;
  const request = problem?.request_id === undefined ? '' : `, request ${problem.request_id}`;
  const lines = [`${message} (${code}${request})`];
  if (HINTS[code] !== undefined) lines.push(HINTS[code]);
  if (retryAfterMs !== undefined) lines.push(`Again in ${formatAge(retryAfterMs)}.`);
  return lines.map(printable);
}
