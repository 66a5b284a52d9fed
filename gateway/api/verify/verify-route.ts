import { Type } from 'typebox';
import { ID_HINT } from '../../../schemas/pill.ts';
import { refuse } from '../../http/refuse.ts';
import { metered } from '../server/access-rule.ts';
import { defineRoute } from '../server/define-route.ts';
import { ruled } from '../server/form.ts';
import { optionalText, strict, symbolOf } from '../server/schemas.ts';
import { symbolList } from '../server/symbol-list.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { AnswerSchema } from './schemas.ts';
import { parseVerifyQuery, type VerifyQuery } from './verify-query.ts';

const Query = strict({
  symbol: Type.Optional(symbolOf()),
  symbols: symbolList(VERIFY_LIMITS.symbolsMax, 'excludes the others'),
  id: optionalText('Id of a pill; without `symbol`, the pills of all symbols that have it', {
    pattern: ruled('^.{1,128}$', 'id_malformed', ID_HINT),
  }),
});

/** `GET /api/market/verify`: can a client act on a symbol or pill now? */
export function verifyEndpoint(verify: (query: VerifyQuery) => Promise<object>) {
  return defineRoute({
    method: 'GET',
    url: '/api/market/verify',
    tag: 'market',
    summary: 'Whether a symbol, or a pill, can be acted on now',
    description:
      'The verdict is the first of `unknown`, `stale`, `disagrees`, `outlier` and `verified` that ' +
      'applies; all reasons are listed. A verdict is never `verified` while a part that it depends ' +
      'on is unavailable. `symbol` checks the newest pill of the symbol, `symbol` and `id` that ' +
      `pill; \`id\` alone returns a list of at most ${VERIFY_LIMITS.listMax} pills. One request is one call.`,
    access: metered('verify'),
    query: Query,
    answers: {
      200: {
        description: 'The verdict, the verdicts by symbol, or the verdicts about an id.',
        schema: AnswerSchema,
      },
    },
    async handle(request, reply) {
      const parsed = parseVerifyQuery(request.query);
      if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
      const body = await verify(parsed.value);
      // A verdict is valid only at the moment when it is given.
      reply.header('cache-control', 'no-store');
      return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
    },
  });
}
