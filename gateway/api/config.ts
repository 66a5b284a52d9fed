import path from 'node:path';
import { readCredentialFile } from '../../domain/access/generator-credentials.ts';
import { readPepperSetting } from '../../domain/access/pepper.ts';
import { type PortRange, processesThatFit } from '../../domain/dedicated/capacity.ts';
import { readOverridesPath } from '../../domain/market/calendars/overrides-file.ts';
import { NO_RULES, readVenueRules } from '../../domain/market/calendars/venue-rules.ts';
import { readEgress } from '../../domain/webhooks/send/egress.ts';
import { readBind, readCommonConfig } from '../../lib/config/common.ts';
import { type ConfigReader, readConfig } from '../../lib/config/config.ts';
import { readEngineUrl } from '../../lib/config/engine-url.ts';
import { readExposure } from '../../lib/config/exposure.ts';
import { withoutCredentials } from '../../lib/config/without-credentials.ts';
import { readMailConfig } from '../../lib/mail/config.ts';
import { readTrustedProxies } from '../http/client-address.ts';
import { readOrigins } from '../http/origins.ts';
import { readAlertSettings } from './generator/alert-settings.ts';

export type ApiConfig = ReturnType<typeof readApiConfig>;

/** Reads the settings of the API process. @throws ConfigError naming each fault */
export function readApiConfig(env: NodeJS.ProcessEnv) {
  return readConfig(env, (reader) => {
    const common = readCommonConfig(reader);
    const { open: openBind, ...bind } = readBind(reader, 'API');
    const { urls, publicBy } = readExposure(reader, bind);
    const { canBuy, open: openBilling } = readBilling(reader, publicBy);
    if (publicBy !== undefined && urls.api.startsWith('http:')) {
      reader.fault(
        `${publicBy}: set PUBLIC_URL to the https address of the API; with ${withoutCredentials(urls.api)}, session ` +
          'cookies would lack Secure',
      );
    }
    const demoAccountId = reader.get('DEMO_ACCOUNT_ID');
    const credentialsFile = readCredentialsFile(reader);
    const isOpen = credentialsFile === undefined && publicBy === undefined;
    return {
      ...common,
      open: [
        ...common.open,
        ...openBind,
        ...openBilling,
        ...openDemo(demoAccountId),
        ...openGenerators(isOpen),
      ],
      host: bind.host,
      port: reader.get('API_PORT'),
      /** Whether only this machine can reach the platform. */
      isLocal: publicBy === undefined,
      /** The file of generator credentials of ingest; undefined: the routes are open, or off. */
      credentialsFile,
      /** Alerts about generators to the operator. */
      alerts: readAlertSettings(reader),
      /** Whether checkouts are open: the test provider grants every tier without payment. */
      canBuy,
      databaseUrl: readEngineUrl(reader, 'DATABASE_URL'),
      /** For history, analytics and the log of attempts. */
      clickhouseUrl: readEngineUrl(reader, 'CLICKHOUSE_URL'),
      /** Files of exports; all API processes must see the same folder. */
      exportsFolder: reader.get('EXPORTS_FOLDER') ?? path.join('.local', 'exports'),
      /** File of days that differ from the calendars, such as a typhoon. */
      calendarOverrides: readOverridesPath(reader),
      /** Venues of symbols, in addition to the built-in rules. */
      venueRules: reader.attempt(() => readVenueRules(reader.get('VENUE_RULES')), NO_RULES),
      pepper: readPepperSetting(reader),
      trustedProxies: readTrustedProxies(reader),
      /** Origins whose web pages may read the API, besides pages of this machine. */
      origins: readOrigins(reader),
      mail: readMailConfig(reader),
      /** Where to report a vulnerability, for /.well-known/security.txt; undefined: no such page. */
      securityContact: reader.get('SECURITY_CONTACT'),
      /** Account whose tickets the web page may use without signing in; undefined: no demo. */
      demoAccountId,
      /** Ports for new dedicated sockets; template of their URLs, with `{port}` or `{name}`. */
      dedicated: {
        ports: readPorts(reader),
        max: reader.get('DEDICATED_MAX') ?? processesThatFit(),
        url: checkTemplate(reader, urls.dedicated),
      },
      /** Where webhooks may lead, and how they leave. */
      egress: readEgress(reader),
      /** Public addresses of the services. */
      addresses: { api: urls.api, ingest: urls.ingest, stream: urls.stream },
    };
  });
}

function readCredentialsFile(reader: ConfigReader): string | undefined {
  const file = reader.get('INGEST_CREDENTIALS_FILE');
  const read = file === undefined ? undefined : readCredentialFile(file);
  if (read?.ok === false)
    reader.fault(`INGEST_CREDENTIALS_FILE: ${read.reason.replace(/\.$/, '')}`);
  return file;
}

function openGenerators(isOpen: boolean): string[] {
  const what = 'what became of pills, without a credential';
  return isOpen
    ? [`${what} (no INGEST_CREDENTIALS_FILE, and every address is of this machine)`]
    : [];
}

/** Test billing is the default only where no other machine can reach it. */
function readBilling(reader: ConfigReader, publicBy: string | undefined) {
  const chosen = reader.get('BILLING');
  const canBuy = (chosen ?? (publicBy === undefined ? 'test' : 'off')) === 'test';
  const reason = chosen !== undefined ? 'BILLING=test' : 'every address is of this machine';
  return { canBuy, open: canBuy ? [`every tier without payment (${reason})`] : [] };
}

function openDemo(accountId: string | undefined): string[] {
  return accountId === undefined ? [] : ['the market on the page (DEMO_ACCOUNT_ID)'];
}

function readPorts(reader: ConfigReader): PortRange {
  const [from = 0, to = 0] = reader.get('DEDICATED_PORTS').split('-').map(Number);
  if (!(from >= 1 && from <= to && to <= 65_535)) {
    reader.fault('DEDICATED_PORTS must be two ports, lower first, e.g. 8301-8400');
  }
  return { from, to };
}

function checkTemplate(reader: ConfigReader, url: string): string {
  if (!/\{(?:port|name)\}/.test(url)) {
    reader.fault(`DEDICATED_URL must contain {port} or {name}, not "${withoutCredentials(url)}"`);
  }
  return url;
}
