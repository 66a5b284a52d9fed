import type { ProblemCode } from '../../http/problem-catalogue.ts';
import type { ProblemMembers } from '../../http/problems.ts';

/** A ClickHouse query that returned no result. */
export class QueryError extends Error {
  override readonly name = 'QueryError';
  /** `heavy`: exceeds the statement's bounds; `busy`: too many statements; `unavailable`: the rest. */
  readonly kind: 'heavy' | 'busy' | 'unavailable';
  /** Names the exceeded bound for the client, unless it is one of the statement's. */
  readonly detail: string | undefined;
  constructor(kind: QueryError['kind'], cause?: unknown, detail?: string) {
    super(`The ClickHouse query failed: ${kind}`, { cause });
    this.kind = kind;
    this.detail = detail;
  }
}

/** The HTTP problem that answers a failed query; `busy` is the same on every route. */
export function queryProblem(
  { kind }: QueryError,
  problems: {
    /** The same query exceeds the bounds again: the caller must change it, and the call counts. */
    readonly heavy: readonly [ProblemCode, ProblemMembers];
    readonly unavailable: ProblemCode;
  },
): readonly [ProblemCode, ProblemMembers] {
  if (kind === 'heavy') return problems.heavy;
  return [kind === 'busy' ? 'overloaded' : problems.unavailable, { retry_after_s: 2 }];
}
