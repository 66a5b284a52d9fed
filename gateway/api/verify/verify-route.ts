import { Type } from 'typebox';
import { SYMBOL_PATTERN } from '../../../schemas/pill.ts';
import { refuse } from '../../http/refuse.ts';
import { metered } from '../access-rule.ts';
import { endpoint } from '../endpoint.ts';
import { queryOf } from '../parameters.ts';
import { VERDICT_EXAMPLE } from './example.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { ID_CHARS_MAX, parseVerifyQuestion, type VerifyQuestion } from './question.ts';
import { AnswerSchema } from './schemas.ts';

const { symbolsMax } = VERIFY_LIMITS;

const Query = Type.Object(
  {
    symbol: Type.Optional(Type.String({ pattern: SYMBOL_PATTERN, description: 'Of this symbol' })),
    symbols: Type.Optional(
      Type.String({
        minLength: 1,
        pattern: `^[^,]*(,[^,]*){0,${symbolsMax - 1}}$`,
        description: `Of these symbols, by commas, at most ${symbolsMax}; alone`,
      }),
    ),
    id: Type.Optional(
      Type.String({
        ...{ minLength: 1, maxLength: ID_CHARS_MAX },
        description: 'Of the pill with this id; without symbol a list of all that have it',
      }),
    ),
  },
  { additionalProperties: false },
);

/** `GET /api/market/verify`: may one act on this now? */
export function verifyEndpoint(answer: (question: VerifyQuestion) => Promise<object>) {
  return endpoint({
    method: 'GET',
    url: '/api/market/verify',
    tag: 'market',
    summary: 'Whether one may act on a symbol, or on a pill, now',
    description:
      'One verdict, the first that applies: `unknown`, `stale`, `disagrees`, `outlier`, ' +
      '`verified`; all reasons are listed. It is never `verified` while a part that it rests on is ' +
      'away. By `symbol` its newest pill is weighed, by `symbol` and `id` that pill; `id` alone ' +
      `gives a list, ${VERIFY_LIMITS.listMax} at the most. One request is one call.`,
    access: metered('verify'),
    query: Query,
    checksQuery: true,
    answers: {
      200: {
        description: 'The verdict, the verdicts by symbol, or those of an id.',
        schema: AnswerSchema,
        example: VERDICT_EXAMPLE,
      },
    },
    async handle(request, reply) {
      const parsed = parseVerifyQuestion(queryOf(request));
      if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
      const body = await answer(parsed.value);
      // A verdict is of its moment.
      reply.header('cache-control', 'no-store');
      return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
    },
  });
}
