import type { Keyring } from '../../../lib/access/access.ts';
import type { BillingEvent } from '../../../lib/accounts/billing.ts';
import { applyBillingEvent } from '../../../lib/accounts/billing.ts';
import { eraseClosedAccounts } from '../../../lib/accounts/close-account.ts';
import { startEventMail } from '../../../lib/accounts/event-mail.ts';
import { createKeys, type Keys } from '../../../lib/accounts/keys.ts';
import { createPasswords } from '../../../lib/accounts/passwords.ts';
import { raiseReminders } from '../../../lib/accounts/reminders.ts';
import { createSessions, type Sessions } from '../../../lib/accounts/sessions.ts';
import {
  createSubscriptions,
  renewDue,
  type Subscriptions,
} from '../../../lib/accounts/subscriptions.ts';
import { createTestBilling, type TestBilling } from '../../../lib/accounts/test-billing.ts';
import { createUsers, type Users } from '../../../lib/accounts/users.ts';
import type { Log } from '../../../lib/log.ts';
import { type Mailer, openMailer } from '../../../lib/mail/mailer.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { ApiConfig } from '../config.ts';
import { HOUSEKEEPING_MS } from '../limits.ts';

/** What the routes of accounts need. */
export interface AccountServices {
  readonly db: Database;
  readonly keyring: Keyring;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly keys: Keys;
  readonly subscriptions: Subscriptions;
  readonly billing: TestBilling;
  readonly applyEvent: (event: BillingEvent) => ReturnType<typeof applyBillingEvent>;
  readonly mailer: Mailer;
  readonly supportAddress: string;
  readonly addresses: ApiConfig['addresses'];
  /** Cookies go over TLS alone. */
  readonly isSecure: boolean;
  close(): Promise<void>;
}

/** Opens them, and what runs beside requests: mails of events, renewals, reminders, erasure. */
export function openAccountServices(options: {
  readonly db: Database;
  readonly pepper: Buffer;
  readonly config: ApiConfig;
  readonly keyring: Keyring;
  readonly log: Log;
}): AccountServices {
  const { db, pepper, config, keyring, log } = options;
  const { addresses } = config;
  const mailer = openMailer(config.mail);
  const sessions = createSessions(db);
  const billing = createTestBilling({ pepper, pageUrl: `${addresses.api}/docs` });
  const eventMail = startEventMail({ db, mailer, publicUrl: addresses.api, log });
  const housekeeping = setInterval(() => {
    Promise.all([renewDue(db), raiseReminders(db), eraseClosedAccounts(db)]).catch((error) =>
      log.warn({ err: error }, 'renewals, reminders and erasures could not be looked at'),
    );
  }, HOUSEKEEPING_MS);
  return {
    db,
    keyring,
    sessions,
    users: createUsers({
      ...{ db, mailer, sessions, log },
      passwords: createPasswords(),
      publicUrl: addresses.api,
    }),
    keys: createKeys({ db, pepper }),
    subscriptions: createSubscriptions({ db, billing }),
    billing,
    applyEvent: (event) => applyBillingEvent(db, event),
    mailer,
    supportAddress: config.mail.support,
    addresses,
    isSecure: new URL(addresses.api).protocol === 'https:',
    async close() {
      clearInterval(housekeeping);
      await eventMail.close();
      mailer.close();
    },
  };
}
