import type { FastifyReply } from 'fastify';
import { refuse } from '../../http/refuse.ts';
import { QueryError, queryProblem } from '../clickhouse/query-error.ts';
import type { Webhooks } from './webhook-deps.ts';

const PROBLEMS = {
  heavy: [
    'query_too_large',
    { detail: 'The log of this endpoint is too long for this query: filter by message_id.' },
  ],
  unavailable: 'webhook_log_unavailable',
} as const;

/** Reads the log when the account's turn comes; if that fails, sends the problem as the answer. */
export async function readLog<T>(
  { turns }: Pick<Webhooks, 'turns'>,
  accountId: string,
  reply: FastifyReply,
  read: () => Promise<T>,
): Promise<{ readonly value: T } | { readonly refused: FastifyReply }> {
  const leave = await turns.begin(accountId);
  if (leave === undefined) return { refused: refuse(reply, 'overloaded', { retry_after_s: 1 }) };
  try {
    return { value: await read() };
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    return { refused: refuse(reply, ...queryProblem(error, PROBLEMS)) };
  } finally {
    leave();
  }
}
