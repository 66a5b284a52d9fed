import { applyBillingEvent } from '../../../lib/accounts/billing.ts';
import type { BillingEvent } from '../../../lib/accounts/billing-provider.ts';
import { createKeys, type Keys } from '../../../lib/accounts/keys.ts';
import { createPasswords } from '../../../lib/accounts/passwords.ts';
import { createSessions, type Sessions } from '../../../lib/accounts/sessions.ts';
import { createSubscriptions, type Subscriptions } from '../../../lib/accounts/subscriptions.ts';
import { createTestBilling, type TestBilling } from '../../../lib/accounts/test-billing.ts';
import { createUsers, type Users } from '../../../lib/accounts/users.ts';
import type { Log } from '../../../lib/log.ts';
import { createMailQueue } from '../../../lib/mail/mail-queue.ts';
import { openMailer } from '../../../lib/mail/mailer.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { ApiConfig } from '../config.ts';
import { type Dedicated, openDedicated } from '../manager/dedicated.ts';
import { startHousekeeping } from './housekeeping.ts';

/** The rooms of accounts; each route takes those that it names. */
export interface Accounts {
  readonly db: Database;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly keys: Keys;
  readonly subscriptions: Subscriptions;
  readonly billing: TestBilling;
  readonly applyEvent: (event: BillingEvent) => ReturnType<typeof applyBillingEvent>;
  /** Whether anything can be bought here. */
  readonly canBuy: boolean;
  readonly addresses: ApiConfig['addresses'];
  readonly dedicated: Dedicated;
  /** Cookies go over TLS alone. */
  readonly isSecure: boolean;
  /** Ends what runs beside requests, and lets mails leave for 2 s at the most. */
  close(): Promise<void>;
}

/** Opens them, and what runs beside requests. */
export function openAccounts(options: {
  readonly db: Database;
  /** For what runs beside requests. */
  readonly background: Database;
  readonly pepper: Buffer;
  readonly config: ApiConfig;
  readonly log: Log;
}): Accounts {
  const { db, background, pepper, config, log } = options;
  const { addresses } = config;
  const mailer = openMailer(config.mail);
  const mails = createMailQueue({ mailer, log });
  const billing = createTestBilling({ pepper, pageUrl: `${addresses.api}/docs` });
  const housekeeping = startHousekeeping({
    ...{ db: background, mailer, log },
    publicUrl: addresses.api,
    support: config.mail.support,
  });
  return {
    db,
    users: createUsers({ db, mails, passwords: createPasswords(), publicUrl: addresses.api }),
    sessions: createSessions(db),
    keys: createKeys({ db, pepper }),
    subscriptions: createSubscriptions({ db, billing }),
    billing,
    applyEvent: (event) => applyBillingEvent(db, event),
    canBuy: config.canBuy,
    addresses,
    dedicated: openDedicated(db, config.dedicated),
    isSecure: new URL(addresses.api).protocol === 'https:',
    async close() {
      await Promise.all([housekeeping.close(), mails.close()]);
      mailer.close();
    },
  };
}
