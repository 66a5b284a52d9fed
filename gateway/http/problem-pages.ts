import { FIELD_CODES, type FieldCode } from '../../schemas/fault.ts';
import { PROBLEMS, type ProblemCode } from './problem-catalogue.ts';
import { problemPath } from './problems.ts';

const FIELDS = Object.keys(FIELD_CODES) as FieldCode[];

/** What GET /problems answers, on every server: problems, and codes of single faults. */
export function problemList() {
  return {
    data: (Object.keys(PROBLEMS) as ProblemCode[]).map(describeProblem),
    faults: FIELDS.map(describeFault),
  };
}

/** What GET /problems/{name} answers. @returns undefined if there is no such problem or fault */
export function problemPage(name: string) {
  const code = name.replaceAll('-', '_');
  if (Object.hasOwn(PROBLEMS, code)) return describeProblem(code as ProblemCode);
  return Object.hasOwn(FIELD_CODES, code) ? describeFault(code as FieldCode) : undefined;
}

export function describeProblem(code: ProblemCode) {
  return { code, type: problemPath(code), ...PROBLEMS[code] };
}

function describeFault(code: FieldCode) {
  return { code, meaning: FIELD_CODES[code] };
}
