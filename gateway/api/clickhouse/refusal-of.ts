import type { ProblemCode } from '../../http/problem-catalogue.ts';
import type { ProblemMembers } from '../../http/problems.ts';
import type { NoAnswer } from './select.ts';

/** What a route says where there is no answer; what ClickHouse has too much of is said alike. */
export interface OwnProblems {
  /** Over the bounds it will be again: the question's fault, so it counts. */
  readonly heavy: readonly [ProblemCode, ProblemMembers];
  readonly away: ProblemCode;
}

/** The problem that tells why there is no answer. */
export function refusalOf(
  { why }: NoAnswer,
  { heavy, away }: OwnProblems,
): readonly [ProblemCode, ProblemMembers] {
  const problems = {
    heavy,
    busy: ['overloaded', { retry_after_s: 2 }],
    away: [away, { retry_after_s: 2 }],
  } as const;
  return problems[why];
}
