import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import {
  answerTicket,
  closeTicket,
  listWaitingTickets,
  readTicket,
  TICKET_MESSAGES_MAX,
  TICKETS_PAGE_MAX,
} from '../../domain/support/tickets.ts';
import { AdminError, withAdminSession } from './admin-session.ts';
import { positive } from './option-values.ts';
import { print } from './print.ts';

const ANSWER_CHARS_MAX = 10_000;

/** Adds `support …`. */
export function addSupportCommands(program: Command): void {
  const support = program.command('support').description('Tickets of customers');
  support
    .command('list')
    .description('Lists the tickets that wait for an answer: by tier, then the oldest first')
    .option('--limit <count>', `at most ${TICKETS_PAGE_MAX}`, positive, 50)
    .action(async ({ limit }: { limit: number }, command: Command) =>
      print(await withAdminSession(({ db }) => listWaitingTickets(db, limit)), command),
    );
  support
    .command('show <ticket>')
    .description('Shows a ticket with all that was written')
    .action(async (id: string, _: unknown, command: Command) => {
      const ticket = await withAdminSession(({ db }) => readTicket(db, undefined, id));
      if (ticket === undefined) throw unknownTicket(id);
      print(ticket, command);
    });
  support
    .command('answer <ticket> <file>')
    .description('Answers with the text of a file, which is mailed to the users; - is the input')
    .action(async (ticketId: string, file: string, _: unknown, command: Command) => {
      const message = await readAnswer(file);
      const outcome = await withAdminSession(({ db, operator }) =>
        answerTicket(db, { ...operator, ticketId, message }),
      );
      if (outcome === 'unknown') throw unknownTicket(ticketId);
      if (outcome === 'full') {
        throw new AdminError(
          `${ticketId} has ${TICKET_MESSAGES_MAX} messages: answer by mail, and close the ticket.`,
        );
      }
      print({ ticket: ticketId, state: 'answered' }, command);
    });
  support
    .command('close <ticket>')
    .description('Closes a ticket; a message of the customer opens it again')
    .action(async (ticketId: string, _: unknown, command: Command) => {
      const outcome = await withAdminSession(({ db, operator }) =>
        closeTicket(db, { ...operator, ticketId }),
      );
      if (outcome === 'unknown') throw unknownTicket(ticketId);
      print({ ticket: ticketId, state: 'closed' }, command);
    });
}

/** @throws AdminError if the file cannot be read, is blank or too long */
async function readAnswer(file: string): Promise<string> {
  const from = file === '-' ? '/dev/stdin' : file;
  const text = await readFile(from, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new AdminError(`${file} cannot be read (${error.code}): name a file with the answer.`);
  });
  const answer = text.trim();
  if (answer === '') throw new AdminError(`${file} is blank: write the answer into it.`);
  if (answer.length <= ANSWER_CHARS_MAX) return answer;
  throw new AdminError(`The answer has more than ${ANSWER_CHARS_MAX} characters: shorten it.`);
}

function unknownTicket(id: string): AdminError {
  return new AdminError(`There is no ticket ${id}: see "support list".`);
}
