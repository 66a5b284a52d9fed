import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { boughtTierOf } from '../../../domain/access/entitlement.ts';
import {
  closeOwnTicket,
  listTickets,
  openSupportTicket,
  readTicket,
  TICKET_MESSAGES_MAX,
  TICKET_STATES,
  TICKETS_PAGE_MAX,
  writeToSupport,
} from '../../../domain/support/tickets.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { ownAccount } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf } from '../server/caller.ts';
import { nextPage } from '../server/next-page.ts';
import {
  ACCEPTED,
  Accepted,
  idOf,
  limitOf,
  lineOf,
  Next,
  STRICT,
  Time,
  textOf,
} from '../server/schemas.ts';
import type { Accounts } from './account-deps.ts';

const TicketId = Type.String({ examples: ['tkt_k3yq7v2bqm9c'] });
const State = Type.Enum([...TICKET_STATES], {
  description: 'open = support is to answer; answered = support wrote last; closed = settled',
});
const Opened = Type.Object({
  ticket: TicketId,
  priority: Type.Integer({ minimum: 1, maximum: 3, examples: [2] }),
  channel: Type.String({ examples: ['priority'] }),
});
const TICKET = {
  id: TicketId,
  subject: Type.String({ examples: ['Pills of 7203.T'] }),
  state: State,
  created_at: Time,
};
const Ticket = Type.Object(TICKET);
const Message = Type.Object({
  author: Type.Enum(['customer', 'support']),
  message: Type.String({ examples: ['None have arrived since 01:00Z. Why?'] }),
  created_at: Time,
});
const TicketPage = Type.Object({ data: Type.Array(Ticket), next: Next });
const TicketWithMessages = Type.Object({ ...TICKET, messages: Type.Array(Message) });

const MESSAGE_CHARS_MAX = 10_000;
const access = ownAccount('support', 'support');
const params = Type.Object({ id: idOf('tkt') }, STRICT);

type Deps = Pick<Accounts, 'db'>;

/** Support tickets: open one, list them, read the answers, write again, close. */
export function supportRoutes(deps: Deps): RouteOptions[] {
  return [openRoute(deps), listRoute(deps), readRoute(deps), writeRoute(deps), closeRoute(deps)];
}

function openRoute({ db }: Deps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/support',
    tag: 'account',
    summary: 'Write to support; tickets are prioritised by tier',
    access,
    body: Type.Object({ subject: lineOf(200), message: textOf(MESSAGE_CHARS_MAX) }, STRICT),
    bodyExample: { subject: 'Pills of 7203.T', message: 'None have arrived since 01:00Z. Why?' },
    answers: {
      202: answerOf('Accepted; the ticket is mailed to support about a second later.', Opened),
    },
    problems: ['too_many_attempts'],
    ifUnknown: 'Look for the ticket at GET /api/support; send it again if it is not there.',
    async handle(request, reply) {
      const { account } = callerOf(request);
      const result = await openSupportTicket(db, {
        accountId: account.id,
        tier: boughtTierOf(account, Date.now()),
        ...request.body,
      });
      if (result.kind === 'limit') {
        return refuse(reply, 'too_many_attempts', { retry_after_s: result.retryAfterS });
      }
      const { id: ticket, priority, channel } = result;
      return reply.code(202).send({ ticket, priority, channel });
    },
  });
}

function listRoute({ db }: Deps): RouteOptions {
  const before = Type.Optional(idOf('tkt'));
  return accountRoute({
    method: 'GET',
    url: '/api/support',
    tag: 'account',
    summary: 'List support tickets, newest first',
    access,
    query: Type.Object({ limit: limitOf(TICKETS_PAGE_MAX, 50), before }, STRICT),
    answers: { 200: answerOf('One page.', TicketPage) },
    async handle(request) {
      const { limit = 50, before } = request.query;
      const tickets = await listTickets(db, callerOf(request).account.id, { limit, before });
      const next =
        tickets.length < limit ? null : nextPage(request.url, { before: tickets.at(-1)!.id });
      return { data: tickets.map((ticket) => bodyOf(Ticket, ticket)), next };
    },
  });
}

function readRoute({ db }: Deps): RouteOptions {
  return accountRoute({
    method: 'GET',
    url: '/api/support/:id',
    tag: 'account',
    summary: 'Read a support ticket with its messages, oldest first',
    access,
    params,
    answers: { 200: answerOf('The ticket.', TicketWithMessages) },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const ticket = await readTicket(db, callerOf(request).account.id, request.params.id);
      if (ticket === undefined) return refuse(reply, 'object_not_found');
      const messages = ticket.messages.map((message) => bodyOf(Message, message));
      return { ...bodyOf(Ticket, ticket), messages };
    },
  });
}

function writeRoute({ db }: Deps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/support/:id/messages',
    tag: 'account',
    summary: 'Write to support about a ticket, which is then open again',
    access,
    params,
    body: Type.Object({ message: textOf(MESSAGE_CHARS_MAX) }, STRICT),
    bodyExample: { message: 'It happened again at 02:00Z.' },
    answers: { 202: answerOf('Accepted; mailed to support about a second later.', Accepted) },
    problems: ['object_not_found', 'too_many_attempts', 'state_conflict'],
    ifUnknown: 'Read the ticket: it has the message if the message was stored.',
    async handle(request, reply) {
      const { message } = request.body;
      const of = { accountId: callerOf(request).account.id, ticketId: request.params.id };
      const result = await writeToSupport(db, { ...of, message });
      switch (result.kind) {
        case 'unknown':
          return refuse(reply, 'object_not_found');
        case 'limit':
          return refuse(reply, 'too_many_attempts', { retry_after_s: result.retryAfterS });
        case 'full': {
          const detail = `A ticket has at most ${TICKET_MESSAGES_MAX} messages: open another one.`;
          return refuse(reply, 'state_conflict', { detail });
        }
        case 'ok':
          return reply.code(202).send(ACCEPTED);
      }
    },
  });
}

function closeRoute({ db }: Deps): RouteOptions {
  return accountRoute({
    method: 'PATCH',
    url: '/api/support/:id',
    tag: 'account',
    summary: 'Close a support ticket',
    access,
    params,
    body: Type.Object({ state: Type.Literal('closed') }, STRICT),
    bodyExample: { state: 'closed' },
    answers: { 204: { description: 'Closed; another message opens it again.' } },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const of = { accountId: callerOf(request).account.id, ticketId: request.params.id };
      if (await closeOwnTicket(db, of)) return reply.code(204).send();
      return refuse(reply, 'object_not_found');
    },
  });
}
