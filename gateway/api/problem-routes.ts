import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { PROBLEMS, type ProblemCode, type ProblemType } from '../http/problem-catalogue.ts';
import { problemPath } from '../http/problems.ts';
import { refuse } from '../http/refuse.ts';
import { OPEN } from './access-rule.ts';
import { endpoint } from './endpoint.ts';

const ProblemKind = Type.Object({
  code: Type.String(),
  type: Type.String({ format: 'uri-reference' }),
  status: Type.Integer(),
  title: Type.String(),
  meaning: Type.String(),
  remedy: Type.String(),
  challenge: Type.Optional(Type.String({ description: 'WWW-Authenticate of its answers' })),
  retry: Type.Enum(['never', 'after', 'same_id', 'check']),
});

/** `GET /problems` and `GET /problems/{name}`: where `type` of a problem leads. */
export function addProblemRoutes(app: FastifyInstance): void {
  app.route(
    endpoint({
      method: 'GET',
      url: '/problems',
      tag: 'service',
      summary: 'Every problem that an answer may carry',
      access: OPEN,
      answers: {
        200: {
          description: 'The catalogue.',
          schema: Type.Object({ data: Type.Array(ProblemKind) }),
          example: { data: [describeProblem('key_invalid')] },
        },
      },
      handle: () => ({ data: (Object.keys(PROBLEMS) as ProblemCode[]).map(describeProblem) }),
    }),
  );
  app.route(
    endpoint({
      method: 'GET',
      url: '/problems/:name',
      tag: 'service',
      summary: 'What a problem means, and what to do',
      access: OPEN,
      params: Type.Object(
        { name: Type.String({ maxLength: 64 }) },
        { additionalProperties: false },
      ),
      answers: {
        200: {
          description: 'The problem.',
          schema: ProblemKind,
          example: describeProblem('key_invalid'),
        },
      },
      problems: ['object_not_found'],
      handle(request, reply) {
        const code = request.params.name.replaceAll('-', '_');
        if (!Object.hasOwn(PROBLEMS, code)) return refuse(reply, 'object_not_found');
        return describeProblem(code as ProblemCode);
      },
    }),
  );
}

function describeProblem(code: ProblemCode) {
  const {
    type = problemPath(code),
    status,
    title,
    meaning,
    remedy,
    retry,
    challenge,
  }: ProblemType = PROBLEMS[code];
  const told = { code, type, status, title, meaning, remedy, retry };
  return challenge === undefined ? told : { ...told, challenge };
}
