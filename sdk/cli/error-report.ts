import type { PilloleError } from '../error.ts';
import { formatAge, printable } from './text-table.ts';

/** An error for programs, with the member names of the contract. */
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

/** The remedy for an error, where its message does not give one. */
const HINTS: Readonly<Record<string, string>> = {
  key_missing: 'Set PILLOLE_KEY, or use --key-file.',
  key_scheme_wrong: 'Set PILLOLE_KEY to the key alone, without Bearer.',
  key_malformed: 'Check PILLOLE_KEY or --key-file: the key is not complete.',
  key_invalid: 'Check PILLOLE_KEY or --key-file: the key is unknown, revoked or expired.',
  credential_missing: 'Set PILLOLE_GENERATOR_TOKEN, or use --token-file.',
  credential_invalid: 'Check the token: it is unknown, expired or withdrawn.',
  tier_too_low:
    'Streams are part of Pro and Institutional; `pillole latest` works with every plan.',
  network: 'Check the address, and that the platform is running.',
  connection_lost: 'Check the address, and that the platform is running.',
};

/** An error for people: what happened, what to do, how long to wait. @returns its lines */
export function failureLines(error: PilloleError): string[] {
  const { code, message, retryAfterMs, problem } = error;
  const request = problem?.request_id === undefined ? '' : `, request ${problem.request_id}`;
  const lines = [`${message} (${code}${request})`];
  if (HINTS[code] !== undefined) lines.push(HINTS[code]);
  if (retryAfterMs !== undefined) lines.push(`Try again in ${formatAge(retryAfterMs)}.`);
  return lines.map(printable);
}
