import { Type } from 'typebox';
import { describeProblem, problemList, problemPage } from '../../http/problem-pages.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN } from './access-rule.ts';
import { defineRoute } from './define-route.ts';
import { strict } from './schemas.ts';

const ProblemKind = Type.Object({
  code: Type.String(),
  type: Type.String({ format: 'uri-reference' }),
  status: Type.Integer(),
  title: Type.String(),
  meaning: Type.String(),
  remedy: Type.String(),
  challenge: Type.Optional(Type.String({ description: 'WWW-Authenticate header of the answers' })),
  retry: Type.Enum(['never', 'after', 'same_id', 'check']),
});
const FaultKind = Type.Object({ code: Type.String(), meaning: Type.String() });
const FAULT_EXAMPLE = problemPage('symbol-malformed');

/** `GET /problems` and `GET /problems/{name}`, the target of `type` in a problem. */
export const problemRoutes = () => [
  defineRoute({
    method: 'GET',
    url: '/problems',
    tag: 'service',
    summary: 'List every problem that an answer may carry, and every code of a single fault',
    access: OPEN,
    answers: {
      200: {
        description: 'The catalogue: problems, and the codes of entries of `errors`.',
        schema: Type.Object({ data: Type.Array(ProblemKind), faults: Type.Array(FaultKind) }),
        example: { data: [describeProblem('key_invalid')], faults: [FAULT_EXAMPLE] },
      },
    },
    handle: problemList,
  }),
  defineRoute({
    method: 'GET',
    url: '/problems/:name',
    tag: 'service',
    summary: 'Explain a problem and its remedy, or the code of a single fault',
    access: OPEN,
    params: strict({ name: Type.String({ maxLength: 64 }) }),
    answers: {
      200: {
        description: 'The problem, or the fault.',
        schema: Type.Union([ProblemKind, FaultKind]),
        example: describeProblem('key_invalid'),
      },
    },
    problems: ['object_not_found'],
    handle: ({ params }, reply) => problemPage(params.name) ?? refuse(reply, 'object_not_found'),
  }),
];
