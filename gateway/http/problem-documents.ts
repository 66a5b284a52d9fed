import { Type } from 'typebox';
import { PROBLEMS, type ProblemCode, type ProblemType } from './problem-catalogue.ts';
import { EXAMPLE_MEMBERS } from './problem-examples.ts';
import { PROBLEM_MEDIA_TYPE, problemAnswer } from './problems.ts';

/** Groups problems by status, because OpenAPI has one answer for each status. */
export function problemAnswers(
  codes: readonly ProblemCode[],
): Record<string, { readonly headers: Record<string, object> }> {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) {
    const { status } = PROBLEMS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      {
        description: group.map((code) => `\`${code}\`: ${PROBLEMS[code].meaning}`).join('\n\n'),
        headers: headersOf(group),
        content: {
          [PROBLEM_MEDIA_TYPE]: {
            schema: problemSchema(group),
            examples: Object.fromEntries(group.map((code) => [code, { value: example(code) }])),
          },
        },
      },
    ]),
  );
}

function headersOf(group: readonly ProblemCode[]): Record<string, object> {
  const problems: readonly ProblemType[] = group.map((code) => PROBLEMS[code]);
  const challenges = problems.flatMap(({ challenge = [] }) => challenge);
  return {
    ...(problems.some(({ retry }) => retry === 'after')
      ? { 'Retry-After': { type: 'integer', description: 'Seconds to wait' } }
      : {}),
    ...(challenges.length === 0
      ? {}
      : { 'WWW-Authenticate': { type: 'string', examples: [...new Set(challenges)] } }),
  };
}

function problemSchema(group: readonly ProblemCode[]): object {
  return {
    type: 'object',
    required: ['type', 'title', 'status', 'code', 'retry', 'remedy', 'request_id'],
    properties: {
      type: { type: 'string', format: 'uri-reference' },
      title: { type: 'string' },
      status: { type: 'integer' },
      code: { type: 'string', enum: group },
      retry: { type: 'string', enum: ['never', 'after', 'same_id', 'check'] },
      retry_after_s: { type: 'integer', minimum: 1 },
      remedy: { type: 'string', description: 'What to do' },
      detail: { type: 'string' },
      errors: FaultsSchema,
      request_id: { type: 'string' },
    },
  };
}

/** The faults of a request; GET /problems has the meaning of each code. */
export const FaultsSchema = Type.Array(
  Type.Object({
    parameter: Type.Optional(Type.String({ description: 'A parameter of the query or path' })),
    pointer: Type.Optional(Type.String({ description: 'A JSON pointer into the body (RFC 6901)' })),
    code: Type.String({ description: 'Stable; GET /problems lists all codes' }),
    detail: Type.String({ description: 'The rule in words' }),
  }),
);

/** An example occurrence of a problem. */
function example(code: ProblemCode): object {
  const wait = PROBLEMS[code].retry === 'after' ? { retry_after_s: 1 } : {};
  const { body } = problemAnswer(code, { ...wait, ...EXAMPLE_MEMBERS[code] });
  return { ...JSON.parse(body), request_id: 'r_8a1f0c2b7d3e4f56' };
}
