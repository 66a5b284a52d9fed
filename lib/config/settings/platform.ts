import { choice, text, usedBy, whole } from '../setting.ts';

/** Accounts, credentials, market, mail and alerts. */
export const PLATFORM = {
  ...usedBy(['api', 'stream', 'webhooks', 'destinations', 'admin'], {
    KEY_PEPPER_FILE: text(
      'File with the pepper, at least 32 bytes as hex, the same for every process; without it every ' +
        'key is void',
      { requiredBy: ['api', 'stream', 'webhooks', 'destinations'] },
    ),
  }),
  ...usedBy(['ingest', 'api'], {
    INGEST_CREDENTIALS_FILE: text('File of generator credentials; without it ingest is open'),
  }),
  ...usedBy(['ingest'], {
    INGEST_OPEN: choice(
      '`yes` accepts pills without a credential from other machines',
      ['yes', 'no'],
      'no',
    ),
  }),
  ...usedBy(['api', 'stream'], {
    CALENDAR_OVERRIDES: text('File of market days that differ from the calendars'),
    VENUE_RULES: text('File of venues of symbols, beside the built-in forms'),
  }),
  ...usedBy(['api'], {
    BILLING: choice(
      '`test` gives every tier without payment; by default test while only this machine reaches the ' +
        'platform, else off',
      ['test', 'off'],
      undefined,
    ),
    DEMO_ACCOUNT_ID: text('Account whose market the page shows to everyone'),
    EXPORTS_FOLDER: text(
      'Folder of exports, at most 50 GiB, the same for all API processes; .local/exports by default',
    ),
    SECURITY_CONTACT: text('Where to report a vulnerability, for /.well-known/security.txt', {
      form: [
        /^(?:mailto:|https:\/\/|tel:)[\x21-\x7e]+$/,
        'a mailto:, https: or tel: address, e.g. mailto:security@example.com',
      ],
    }),
    MAIL_OUTBOX: text('Folder of mails without SMTP_URL; .local/outbox by default'),
    MAIL_FROM: text('Sender of mails', { fallback: 'pillole <no-reply@pillole.invalid>' }),
    SUPPORT_ADDRESS: text('Recipient of support tickets', { fallback: 'support@pillole.invalid' }),
    ALERT_ADDRESS: text('Mail address of alerts about generators; none by default'),
    ALERT_WEBHOOK_URL: text('Address that gets alerts about generators as JSON by POST', {
      isSecret: true,
      form: [/^https?:/, 'an http or https address'],
    }),
    ALERT_SILENCE_S: whole(
      'An alert says that a generator is silent after this time in an open market',
      300,
      { min: 1, max: 86_400 },
      's',
    ),
    ALERT_REFUSED_PERCENT: whole(
      'An alert says that so many pills of a generator are refused',
      10,
      { min: 1, max: 100 },
      '%',
    ),
    DEDICATED_MAX: whole(
      'Dedicated sockets at the same time; by default as many as the memory of the machine holds',
      undefined,
      { min: 0, max: 10_000 },
    ),
  }),
  // Webhooks, destinations and fetches of keys never lead to the mail server.
  ...usedBy(['api', 'stream', 'webhooks', 'destinations'], {
    SMTP_URL: text(
      'The smtp:// or smtps:// address with user and password; without it mails are files in MAIL_OUTBOX',
      { isSecret: true },
    ),
    DEDICATED_PORTS: text('Ports of dedicated sockets, first and last', {
      fallback: '8301-8400',
      form: [/^\d{1,5}-\d{1,5}$/, 'two ports, lower first, e.g. 8301-8400'],
    }),
  }),
  ...usedBy(['dedicated'], {
    DEDICATED_RUN_FOLDER: text(
      'Folder with the records of running sockets, of this process alone; in the temp folder by default',
    ),
    DEDICATED_NICE: whole('Priority of the processes of dedicated sockets, -20 is first', -5, {
      min: -20,
      max: 19,
    }),
  }),
  ...usedBy(['stream'], {
    DEDICATED_NAME: text('Socket that the process serves; set by the process dedicated'),
    DEDICATED_ACCOUNT: text('Account of DEDICATED_NAME; set by the process dedicated'),
  }),
  ...usedBy(['start'], {
    DOCKER_HOST: text(
      'Address of the Docker engine; a socket at one of the usual paths by default',
    ),
    JAVA_HOME: text('Folder of Java; the java in PATH by default'),
    DEMO_ACCOUNTS: choice(
      'Whether to make demo accounts; auto: unless DATABASE_URL names a server',
      ['auto', 'yes', 'no'],
      'auto',
    ),
  }),
};
