import type { Pepper } from '../../../domain/access/pepper.ts';
import { createSeal } from '../../../domain/access/sealing.ts';
import { createAttempts } from '../../../domain/accounts/attempts.ts';
import { applyBillingEvent } from '../../../domain/accounts/billing.ts';
import type { BillingEvent } from '../../../domain/accounts/billing-provider.ts';
import { createKeys } from '../../../domain/accounts/keys.ts';
import { createPasswords } from '../../../domain/accounts/passwords.ts';
import { createSecondFactors } from '../../../domain/accounts/second-factor.ts';
import { createSessions } from '../../../domain/accounts/sessions.ts';
import { createSubscriptions } from '../../../domain/accounts/subscriptions.ts';
import { createTestBilling } from '../../../domain/accounts/test-billing.ts';
import { createUsers } from '../../../domain/accounts/users.ts';
import { createAcceptance } from '../../../domain/members/acceptance.ts';
import { createInvitations } from '../../../domain/members/invitations.ts';
import type { Log } from '../../../lib/log/log.ts';
import { createMailQueue } from '../../../lib/mail/mail-queue.ts';
import { type Mailer, openMailer } from '../../../lib/mail/mailer.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { ApiConfig } from '../config.ts';
import type { Dedicated } from '../manager/dedicated-sockets.ts';
import { createSessionCookie, createSessionFinder } from '../server/session-cookie.ts';
import { startHousekeeping } from './housekeeping.ts';

/** Dependencies of the account routes; each route takes those that it needs. */
export type Accounts = ReturnType<typeof openAccounts>;

/**
 * Opens the dependencies, and starts background work.
 * @param background database connections of the background work
 */
export function openAccounts(of: {
  readonly db: Database;
  readonly background: Database;
  readonly pepper: Pepper;
  readonly dedicated: Dedicated;
  readonly config: ApiConfig;
  readonly log: Log;
}) {
  const { db, background, pepper, dedicated, config, log } = of;
  const { addresses } = config;
  const { support } = config.mail;
  const mailer = replyingTo(support, openMailer(config.mail));
  const mails = createMailQueue({ mailer, log });
  const billing = createTestBilling({ pepper, pageUrl: `${addresses.api}/docs` });
  const housekeeping = startHousekeeping({
    db: background,
    mailer,
    log,
    publicUrl: addresses.api,
    support,
  });
  const attempts = createAttempts(db);
  const secondFactors = createSecondFactors({ db, seal: createSeal(pepper), attempts });
  const passwords = createPasswords();
  const sessions = createSessions(db);
  const cookie = createSessionCookie(addresses.api);
  const publicUrl = addresses.api;
  return {
    db,
    invitations: createInvitations({ db, mails, attempts, publicUrl }),
    acceptance: createAcceptance({ db, passwords, attempts }),
    users: createUsers({ db, mails, passwords, attempts, secondFactors, publicUrl }),
    secondFactors,
    sessions,
    findSession: createSessionFinder(sessions, cookie),
    keys: createKeys({ db, pepper }),
    subscriptions: createSubscriptions({ db, billing, canBuy: config.canBuy }),
    billing,
    applyEvent: (event: BillingEvent) => applyBillingEvent(db, event),
    /** Whether checkouts are open. */
    canBuy: config.canBuy,
    addresses,
    dedicated,
    cookie,
    /** Mail address of support, for those who cannot sign in. */
    support,
    /** Stops background work, and waits up to 2 s for queued mails. */
    async close(): Promise<void> {
      await Promise.all([housekeeping.close(), mails.close()]);
      mailer.close();
    },
  };
}

/** Answers to mails for customers go to support. */
function replyingTo(support: string, mailer: Mailer): Mailer {
  return {
    ...mailer,
    send: (mail) => mailer.send(mail.to === support ? mail : { replyTo: support, ...mail }),
  };
}
