import { ACCESS_PROBLEMS } from './catalogue/access-problems.ts';
import { ACCOUNT_PROBLEMS } from './catalogue/account-problems.ts';
import { HTTP_PROBLEMS } from './catalogue/http-problems.ts';
import { INGEST_PROBLEMS } from './catalogue/ingest-problems.ts';
import { READ_PROBLEMS } from './catalogue/read-problems.ts';

export type { ProblemType } from './catalogue/problem-type.ts';

/** Every problem that an HTTP answer may carry. Codes are contract: never renamed. */
export const PROBLEMS = {
  ...HTTP_PROBLEMS,
  ...INGEST_PROBLEMS,
  ...READ_PROBLEMS,
  ...ACCESS_PROBLEMS,
  ...ACCOUNT_PROBLEMS,
};

export type ProblemCode = keyof typeof PROBLEMS;
