import type { FastifyReply } from 'fastify';
import type { ProblemCode } from './problem-catalogue.ts';
import { type ProblemMembers, problemAnswer } from './problems.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Why the request was refused. */
    problemCode?: ProblemCode;
    /** `request_id` of the answer. */
    problemId?: string;
  }
}

/** Answers a request with a problem. */
export function refuse(
  reply: FastifyReply,
  code: ProblemCode,
  members: ProblemMembers = {},
): FastifyReply {
  reply.request.problemCode = code;
  const { status, headers, body, requestId } = problemAnswer(code, members);
  reply.request.problemId = requestId;
  // As bytes: Fastify adds a charset to text, which application/problem+json does not have.
  return reply.code(status).headers(headers).send(Buffer.from(body));
}
