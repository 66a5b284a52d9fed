import { Type } from 'typebox';
import {
  SERVICE_HISTORY_LIMITS,
  type ServiceHistory,
} from '../../../domain/service/service-days.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN } from '../server/access-rule.ts';
import { defineRoute } from '../server/define-route.ts';
import { integers, numbers, texts } from '../server/example.ts';
import { orNull } from '../server/schemas.ts';

const Latency = Type.Object({
  ...integers({ pills: 864_000 }),
  ...numbers({ p50_ms: 4.1, p99_ms: 31.5 }),
  promise_share: Type.Number({
    description: 'Share of the pills that took 100 ms at most',
    examples: [0.9997],
  }),
});
const Day = Type.Object({
  ...texts({ day: '2026-11-20' }),
  ok_share: Type.Union([Type.Number(), Type.Null()], {
    description: 'Share of the observed time in which all parts worked; null = not observed',
    examples: [0.9998],
  }),
  stream: orNull(Latency),
  webhook: orNull(Latency),
});
const Incident = Type.Object({
  component: Type.String({ examples: ['log'] }),
  began_at: Type.String({ examples: ['2026-11-20T01:02:03.000000Z'] }),
  ended_at: orNull(Type.String({ examples: ['2026-11-20T01:02:48.000000Z'] })),
});

/** `GET /api/status/days`: the history behind `GET /api/status`, of all processes. */
export function statusDaysRoute(history: () => ServiceHistory | undefined) {
  return defineRoute({
    method: 'GET',
    url: '/api/status/days',
    tag: 'service',
    summary: 'Read latency, availability and incidents of the last days',
    description:
      `The last ${SERVICE_HISTORY_LIMITS.days} UTC days, newest first. \`stream\`: from the receipt of a ` +
      'pill until it was written to the first socket of each stream process; `webhook`: until the ' +
      'first attempt of the delivery began. Percentiles are interpolated between fixed bounds. ' +
      `An incident is a part that failed for 10 s or more, up to ${SERVICE_HISTORY_LIMITS.incidents}. ` +
      'The figures are about a minute old.',
    access: OPEN,
    answers: {
      200: answerOf(
        'The days.',
        Type.Object({ data: Type.Array(Day), incidents: Type.Array(Incident) }),
      ),
    },
    problems: ['accounts_unavailable'],
    handle(_request, reply) {
      const read = history();
      if (read === undefined) return refuse(reply, 'accounts_unavailable', { retry_after_s: 5 });
      return {
        data: read.days.map(({ stream, webhook, ...day }) => ({
          ...bodyOf(Day, { ...day, stream: null, webhook: null }),
          stream: stream === null ? null : bodyOf(Latency, stream),
          webhook: webhook === null ? null : bodyOf(Latency, webhook),
        })),
        incidents: read.incidents.map((incident) => bodyOf(Incident, incident)),
      };
    },
  });
}
