import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { tierOf } from '../../../lib/access/entitlement.ts';
import { issueTicket } from '../../../lib/access/tickets.ts';
import { sendTicket } from '../../../lib/accounts/support.ts';
import { refuse } from '../../http/refuse.ts';
import { type AccountRule, OWN_ACCOUNT } from '../access-rule.ts';
import { callerOf } from '../caller.ts';
import { accountEndpoint } from './account-endpoint.ts';
import { STRICT, Time } from './schemas.ts';
import type { AccountServices } from './services.ts';

/** A socket is opened with it by a browser, which cannot send a key in a header. */
const MAY_STREAM: AccountRule = {
  by: 'account',
  accepts: ['key', 'session'],
  capability: 'stream',
  scope: 'stream',
  isMetered: false,
};

/** Tickets of both kinds: a question to support, and a pass for one socket. */
export function addTicketRoutes(app: FastifyInstance, services: AccountServices): void {
  const { db, mailer, supportAddress, addresses } = services;
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/support',
      tag: 'account',
      summary: 'Write to support; tickets are ordered by tier',
      access: OWN_ACCOUNT,
      body: Type.Object(
        {
          subject: Type.String({ minLength: 1, maxLength: 200 }),
          message: Type.String({ minLength: 1, maxLength: 10_000 }),
        },
        STRICT,
      ),
      bodyExample: { subject: 'Pills of 7203.T', message: 'Since 01:00Z there are none. Why?' },
      answers: {
        202: {
          description: 'Sent.',
          schema: Type.Object({
            ticket: Type.String(),
            priority: Type.Integer({ minimum: 1, maximum: 3 }),
            channel: Type.String(),
          }),
          example: { ticket: 'tkt_k3yq7v2bqm9c', priority: 2, channel: 'priority' },
        },
      },
      problems: ['too_many_attempts'],
      async handle(request, reply) {
        const { account } = callerOf(request);
        const sent = await sendTicket(
          { db, mailer, support: supportAddress },
          {
            accountId: account.id,
            accountName: account.name,
            tier: tierOf(account, Date.now()),
            ...request.body,
          },
        );
        if (sent.kind === 'limit') {
          return refuse(reply, 'too_many_attempts', { retry_after_s: 3_600 });
        }
        const { id: ticket, priority, channel } = sent;
        return reply.code(202).send({ ticket, priority, channel });
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/stream/tickets',
      tag: 'account',
      summary: 'A pass for one socket, good for 30 s',
      access: MAY_STREAM,
      answers: {
        201: {
          description: 'Open `url` once.',
          schema: Type.Object({ ticket: Type.String(), url: Type.String(), expires_at: Time }),
          example: {
            ticket: 'pit_<random>',
            url: 'ws://127.0.0.1:8082/api/stream?ticket=pit_<random>',
            expires_at: '2026-11-20T01:02:33.000Z',
          },
        },
      },
      async handle(request, reply) {
        const { account, key } = callerOf(request);
        const { ticket, expiresAt } = await issueTicket(db, {
          accountId: account.id,
          keyId: key?.id,
        });
        return reply
          .code(201)
          .header('cache-control', 'no-store')
          .send({
            ticket,
            url: `${addresses.stream}/api/stream?ticket=${ticket}`,
            expires_at: expiresAt.toISOString(),
          });
      },
    }),
  );
}
