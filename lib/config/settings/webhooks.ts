import { choice, text, usedBy, whole } from '../setting.ts';

/** Where webhooks, destinations and fetches of keys may lead, how they leave, and when an endpoint is given up. */
export const WEBHOOKS = {
  ...usedBy(['api', 'stream', 'webhooks', 'destinations'], {
    WEBHOOK_PORTS: text('Ports to which webhooks may lead, separated by commas', {
      fallback: '443,8443',
    }),
    WEBHOOK_ALLOW_LOOPBACK: choice(
      '`true` allows receivers on this machine, while nothing is public',
      ['true', 'false'],
      'false',
    ),
    WEBHOOK_REFUSED_PORTS: text(
      'Ports of this machine to which webhooks never lead, e.g. 9093,9101-9108',
      { fallback: '' },
    ),
    WEBHOOK_DNS_SERVERS: text(
      'Name servers of receivers, e.g. 192.0.2.1:53; those of the machine by default',
    ),
    WEBHOOK_EGRESS_PROXY: text(
      'HTTP proxy through which webhooks leave, with user and password if it asks for them',
      { isSecret: true },
    ),
    WEBHOOK_EGRESS_DNS: choice(
      'Who resolves the names of receivers, if there is an egress proxy',
      ['here', 'proxy'],
      'here',
    ),
  }),
  ...usedBy(['webhooks'], {
    WEBHOOK_TIMEOUT_MS: whole('Bound of one attempt', 15_000, { min: 100, max: 15_000 }, 'ms'),
    WEBHOOK_DISABLE_AFTER_S: whole(
      'An endpoint without a success for so long is disabled',
      273_600,
      { min: 5, max: 2_592_000 },
      's',
    ),
  }),
};
