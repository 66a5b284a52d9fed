import { randomBytes } from 'node:crypto';
import { PROBLEMS, type ProblemCode, type ProblemType } from './problem-catalogue.ts';

/** Members that one occurrence adds to its type; undefined members are omitted. */
export interface ProblemMembers {
  /** Whether a pill that was sent is in the log. */
  readonly stored?: 'no' | 'unknown';
  readonly retry_after_s?: number;
  readonly detail?: string;
  readonly errors?: readonly unknown[];
  readonly [member: string]: unknown;
}

/** A refusal of a request: the problem, and the members of this occurrence. */
export type Refusal = readonly [ProblemCode, ProblemMembers];

/** A problem as a complete HTTP answer. */
export type ProblemAnswer = ReturnType<typeof problemAnswer>;

/** Version of the API, sent with every answer. */
export const API_VERSION = '1.0';
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** Renders one occurrence of a problem, with a new request id. */
export function problemAnswer(
  code: ProblemCode,
  members: ProblemMembers = {},
  more: Readonly<Record<string, string>> = {},
) {
  const { status, title, retry, remedy, type, challenge }: ProblemType = PROBLEMS[code];
  const { stored, ...rest } = members;
  const requestId = `r_${randomBytes(8).toString('hex')}`;
  const body = JSON.stringify({
    type: type ?? problemPath(code),
    title,
    status,
    code,
    stored,
    retry,
    ...rest,
    remedy,
    request_id: requestId,
  });
  const retryAfter = members.retry_after_s;
  const headers: Readonly<Record<string, string>> = {
    'content-type': PROBLEM_MEDIA_TYPE,
    'cache-control': 'no-store',
    'api-version': API_VERSION,
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    ...(challenge === undefined ? {} : { 'www-authenticate': challenge }),
    ...more,
  };
  return { status, headers, body, requestId };
}

/** The page of a problem as a relative reference: `type` of its answers. */
export function problemPath(code: ProblemCode): string {
  return `/problems/${code.replaceAll('_', '-')}`;
}
