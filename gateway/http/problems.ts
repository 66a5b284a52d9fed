import { randomBytes } from 'node:crypto';
import { PROBLEMS, type ProblemCode, type ProblemType } from './problem-catalogue.ts';

/** Whether what was sent is in the log now. */
export type Stored = 'no' | 'unknown';

/** What one occurrence adds to its type; undefined members are left away. */
export interface ProblemMembers {
  readonly stored?: Stored;
  readonly retry_after_s?: number;
  readonly detail?: string;
  readonly errors?: readonly unknown[];
  readonly [member: string]: unknown;
}

/** A problem as an answer: the caller adds nothing but where it goes. */
export interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Version of the interface, on every answer. */
export const API_VERSION = '1.0';
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** Renders one occurrence of a problem, under a fresh request id. */
export function problemAnswer(
  code: ProblemCode,
  members: ProblemMembers = {},
  headers: Readonly<Record<string, string>> = {},
): ProblemAnswer {
  const { status, title, retry, remedy, type, challenge }: ProblemType = PROBLEMS[code];
  const { stored, ...rest } = members;
  const body = JSON.stringify({
    type: type ?? problemPath(code),
    title,
    status,
    code,
    stored,
    retry,
    ...rest,
    remedy,
    request_id: newRequestId(),
  });
  const retryAfter = members.retry_after_s;
  return {
    status,
    body,
    headers: {
      'content-type': PROBLEM_MEDIA_TYPE,
      'cache-control': 'no-store',
      'api-version': API_VERSION,
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
      ...(challenge === undefined ? {} : { 'www-authenticate': challenge }),
      ...headers,
    },
  };
}

/** Where a problem is explained, as a relative reference: `type` of its answers. */
export function problemPath(code: ProblemCode): string {
  return `/problems/${code.replaceAll('_', '-')}`;
}

function newRequestId(): string {
  return `r_${randomBytes(8).toString('hex')}`;
}
