import { readPepperPath } from '../../lib/access/pepper.ts';
import { readVenueRules, type VenueRules } from '../../lib/calendar/venue-rules.ts';
import {
  type CommonConfig,
  ConfigError,
  isLoopback,
  readCommonConfig,
  readConfig,
} from '../../lib/config.ts';
import { dedicatedUrl } from '../../lib/dedicated/address.ts';
import type { PortRange } from '../../lib/dedicated/port.ts';
import { processesThatFit } from '../../lib/dedicated/room.ts';
import { type MailConfig, readMailConfig } from '../../lib/mail/config.ts';
import { readDnsServers } from '../../lib/webhooks/resolve.ts';
import { readUrlPolicy, type UrlPolicy } from '../../lib/webhooks/url-policy.ts';

export interface ApiConfig extends CommonConfig {
  readonly host: string;
  readonly port: number;
  readonly databaseUrl: string;
  /** Where history is read. */
  readonly clickhouseUrl: string;
  readonly pepperPath: string;
  /** File of days that are not as the calendars have them, such as a typhoon's. */
  readonly calendarOverrides: string | undefined;
  /** Where symbols trade, beside the forms that are built in. */
  readonly venueRules: VenueRules;
  /** Proxies whose X-Forwarded-For is believed: addresses or networks; none by default. */
  readonly trustedProxies: readonly string[];
  readonly mail: MailConfig;
  /** Whether checkouts are open: the test provider gives every tier for nothing. */
  readonly canBuy: boolean;
  /** Whose tickets the page at this address may have without signing in; undefined: nobody's. */
  readonly demoAccountId: string | undefined;
  /** Where customers find the services. */
  readonly addresses: { readonly api: string; readonly ingest: string; readonly stream: string };
  /** Ports for new dedicated sockets, and their addresses, with `{port}` or `{name}` in it. */
  readonly dedicated: { readonly ports: PortRange; readonly max: number; readonly url: string };
  /** Where webhooks may lead, and who tells the addresses of names; undefined: as the machine has it. */
  readonly webhooks: {
    readonly policy: UrlPolicy;
    readonly dnsServers: readonly string[] | undefined;
  };
}

/** Reads the settings of the API process. @throws ConfigError naming each fault. */
export function readApiConfig(env: NodeJS.ProcessEnv): ApiConfig {
  const config = readConfig(env, (reader) => {
    const port = reader.integer('API_PORT', { min: 0, max: 65_535, fallback: 8080 });
    const api = reader.text('PUBLIC_URL', `http://127.0.0.1:${port}`);
    const host = reader.text('API_HOST', '127.0.0.1');
    const billing = reader.choice('BILLING', ['test', 'off'], isLoopback(host) ? 'test' : 'off');
    return {
      ...readCommonConfig(reader),
      host,
      canBuy: billing === 'test',
      port,
      databaseUrl: reader.text('DATABASE_URL'),
      clickhouseUrl: reader.text('CLICKHOUSE_URL'),
      calendarOverrides: reader.optional('CALENDAR_OVERRIDES'),
      venueRules: readVenueRules(reader.optional('VENUE_RULES')),
      pepperPath: readPepperPath(reader),
      trustedProxies: reader
        .text('TRUSTED_PROXIES', '')
        .split(/[\s,]+/)
        .filter(Boolean),
      mail: readMailConfig(reader),
      demoAccountId: reader.optional('DEMO_ACCOUNT_ID'),
      dedicated: {
        ports: parsePorts(reader.text('DEDICATED_PORTS', '8301-8400')),
        max: reader.integer('DEDICATED_MAX', { min: 0, max: 10_000, fallback: processesThatFit() }),
        url: reader.text('DEDICATED_URL', 'ws://127.0.0.1:{port}'),
      },
      webhooks: { policy: readUrlPolicy(reader), dnsServers: readDnsServers(reader) },
      addresses: {
        api,
        ingest: reader.text('INGEST_URL', 'http://127.0.0.1:8081'),
        stream: reader.text('STREAM_URL', 'ws://127.0.0.1:8082'),
      },
    };
  });
  for (const [name, url] of Object.entries(config.addresses)) {
    if (!URL.canParse(url)) throw new ConfigError(`The address of ${name}, "${url}", is no URL.`);
  }
  checkDedicated(config.dedicated);
  // Keys and passwords travel in it.
  const { protocol, hostname } = new URL(config.addresses.api);
  if (protocol !== 'https:' && !isLoopback(hostname)) {
    throw new ConfigError(`PUBLIC_URL ${config.addresses.api} must be https outside this machine.`);
  }
  return config;
}

/** @returns an empty range for anything that is none: it is refused afterwards */
function parsePorts(text: string): PortRange {
  const [, from, to] = /^(\d{1,5})-(\d{1,5})$/.exec(text) ?? [];
  return { from: Number(from ?? 0), to: Number(to ?? 0) };
}

function checkDedicated({ ports, url }: ApiConfig['dedicated']): void {
  const { from, to } = ports;
  if (!(from >= 1 && from <= to && to <= 65_535)) {
    throw new ConfigError('DEDICATED_PORTS must be two ports, the lower first: 8301-8400.');
  }
  const isTemplate = /\{(?:port|name)\}/.test(url);
  if (isTemplate && URL.canParse(dedicatedUrl(url, { name: 'ded_x', port: from }))) return;
  throw new ConfigError(`DEDICATED_URL must be a URL with {port} or {name} in it, not "${url}".`);
}
