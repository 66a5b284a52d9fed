import type { FastifyReply, FastifyRequest } from 'fastify';
import { createCounter, createHistogram, LATENCY_BUCKETS_S } from '../../../lib/metrics/metrics.ts';

/** Requests by route and class of status, copied when metrics are collected: a label costs a string. */
const counts = new Map<string, number[]>();

createCounter({
  name: 'pillole_api_requests_total',
  help: 'Requests by route and class of the status: 2xx, 3xx, 4xx or 5xx; `none` is no route.',
  labelNames: ['route', 'status'] as const,
  collect() {
    this.reset();
    for (const [route, byClass] of counts) {
      for (const [of, count] of byClass.entries()) {
        if (count > 0) this.inc({ route, status: `${of}xx` }, count);
      }
    }
  },
});

const answerSeconds = createHistogram({
  name: 'pillole_api_answer_seconds',
  help: 'From the head of a request to the end of its answer, waits that it asked for included.',
  buckets: LATENCY_BUCKETS_S,
});

/** Counts an answered request. The route is its pattern, so the number of labels is bounded. */
export function countAnswer(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const route = request.routeOptions.url ?? 'none';
  const byClass = counts.get(route) ?? [0, 0, 0, 0, 0, 0];
  counts.set(route, byClass);
  byClass[Math.floor(reply.raw.statusCode / 100)]! += 1;
  answerSeconds.observe(reply.elapsedTime / 1_000);
  done();
}
