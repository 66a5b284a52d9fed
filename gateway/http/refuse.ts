import type { FastifyReply } from 'fastify';
import type { ProblemCode } from './problem-catalogue.ts';
import { type ProblemMembers, problemAnswer } from './problems.ts';

/** Answers a request with a problem. */
export function refuse(
  reply: FastifyReply,
  code: ProblemCode,
  members: ProblemMembers = {},
): FastifyReply {
  const { status, headers, body } = problemAnswer(code, members);
  // As bytes: to a text Fastify would add a charset, which application/problem+json does not have.
  return reply.code(status).headers(headers).send(Buffer.from(body));
}
