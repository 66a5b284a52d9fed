import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { readAttempts } from '../../../domain/destinations/attempts.ts';
import { DESTINATION_LIMITS } from '../../../domain/destinations/limits.ts';
import { parseTimestamp } from '../../../schemas/timestamp.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf } from '../server/caller.ts';
import { nextPage } from '../server/next-page.ts';
import { parameterFault } from '../server/parameters.ts';
import { Before, limitOf, Next, STRICT, timeOf } from '../server/schemas.ts';
import type { DestinationDeps } from './destination-deps.ts';
import { DESTINATIONS, READS } from './rules.ts';
import { AttemptBody, destinationParams as params } from './schemas.ts';

const { attemptPageMax, attemptPageDefault, attemptRowsMax, attemptDaysMax } = DESTINATION_LIMITS;

export function attemptsRoute({ db, destinations }: DestinationDeps): RouteOptions {
  return accountRoute({
    method: 'GET',
    url: '/api/destinations/:id/attempts',
    ...DESTINATIONS,
    access: READS,
    summary: 'List the attempts to deliver, newest first',
    description:
      `The newest ${attemptRowsMax} entries of the last ${attemptDaysMax} days; written about every ` +
      '5 s. Faults of the platform are no attempts.',
    params,
    query: Type.Object(
      {
        limit: limitOf(attemptPageMax, attemptPageDefault),
        before: Before,
        outcome: Type.Optional(Type.Enum(['delivered', 'failed'])),
        upstream_status: Type.Optional(Type.Integer({ minimum: 100, maximum: 999 })),
        from: Type.Optional(timeOf('Attempts that began at or after this time')),
        to: Type.Optional(timeOf('Attempts that began before this time')),
      },
      STRICT,
    ),
    answers: {
      200: answerOf('One page.', Type.Object({ data: Type.Array(AttemptBody), next: Next })),
    },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const { id } = request.params;
      const {
        limit = attemptPageDefault,
        before,
        outcome,
        upstream_status: status,
      } = request.query;
      const times = timesOf(request.query);
      if ('faults' in times) return refuse(reply, 'parameter_invalid', { errors: times.faults });
      if ((await destinations.get(callerOf(request).account.id, id)) === undefined) {
        return refuse(reply, 'object_not_found');
      }
      const rows = await readAttempts(db, id, { limit, before, outcome, status, ...times });
      return {
        data: rows.map((row) =>
          bodyOf(AttemptBody, {
            ...row,
            upstream_status: row.status,
            pills: Number(row.pills),
            bytes: Number(row.bytes),
          }),
        ),
        next: rows.length < limit ? null : nextPage(request.url, { before: rows.at(-1)!.id }),
      };
    },
  });
}

function timesOf({ from, to }: { readonly from?: string; readonly to?: string }) {
  const times: { from?: Date; to?: Date } = {};
  const faults = [];
  for (const [name, text] of Object.entries({ from, to })) {
    if (text === undefined) continue;
    const parsed = parseTimestamp(text);
    if (parsed.ok) times[name as 'from' | 'to'] = new Date(parsed.micros / 1_000);
    else faults.push(parameterFault(name, parsed.code, parsed.detail));
  }
  return faults.length === 0 ? times : { faults };
}
