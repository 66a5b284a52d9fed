import { readPepperSetting } from '../../domain/access/pepper.ts';
import { dedicatedAddress } from '../../domain/dedicated/dedicated-url.ts';
import { readOverridesPath } from '../../domain/market/calendars/overrides-file.ts';
import { NO_RULES, readVenueRules } from '../../domain/market/calendars/venue-rules.ts';
import { readEgress } from '../../domain/webhooks/send/egress.ts';
import { readBind, readCommonConfig } from '../../lib/config/common.ts';
import { type ConfigReader, readConfig } from '../../lib/config/config.ts';
import { readEngineUrl } from '../../lib/config/engine-url.ts';
import { readExposure } from '../../lib/config/exposure.ts';
import { readTrustedProxies } from '../http/client-address.ts';
import { readOrigins } from '../http/origins.ts';

export type StreamConfig = ReturnType<typeof readStreamConfig>;

/** Reads the settings of the stream process. @throws ConfigError naming each fault */
export function readStreamConfig(env: NodeJS.ProcessEnv) {
  return readConfig(env, (reader) => {
    const common = readCommonConfig(reader);
    const bind = readBind(reader, 'STREAM');
    const { urls } = readExposure(reader, bind);
    const dedicated = readDedicated(reader);
    const port = reader.get('STREAM_PORT');
    return {
      dedicated,
      /** Public address, to which clients append a path of this process; signatures cover both. */
      publicUrl: canonical(
        dedicated === undefined
          ? urls.stream
          : dedicatedAddress(urls.dedicated, { ...dedicated, port }),
      ),
      /** How the keys of customers' issuers are read. */
      egress: readEgress(reader),
      ...common,
      open: [...common.open, ...bind.open],
      host: bind.host,
      port,
      databaseUrl: readEngineUrl(reader, 'DATABASE_URL'),
      /** File of days that differ from the calendars, such as a typhoon day. */
      calendarOverrides: readOverridesPath(reader),
      /** Where symbols trade, in addition to the built-in forms. */
      venueRules: reader.attempt(() => readVenueRules(reader.get('VENUE_RULES')), NO_RULES),
      pepper: readPepperSetting(reader),
      trustedProxies: readTrustedProxies(reader),
      /** Origins of web pages that may connect, besides pages of this machine. */
      origins: readOrigins(reader),
    };
  });
}

/** An address as clients write it: without a default port. A proxy may take a path of it away. */
function canonical(url: string): string {
  return URL.canParse(url) ? new URL(url).href.replace(/\/$/, '') : url;
}

/** The socket and account, set by the supervisor if the process serves one dedicated socket. */
function readDedicated(reader: ConfigReader) {
  const name = reader.get('DEDICATED_NAME');
  return name === undefined ? undefined : { name, accountId: reader.need('DEDICATED_ACCOUNT') };
}
