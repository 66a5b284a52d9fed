import { readPepperPath } from '../../lib/access/pepper.ts';
import { readVenueRules, type VenueRules } from '../../lib/calendar/venue-rules.ts';
import {
  type CommonConfig,
  type ConfigReader,
  readCommonConfig,
  readConfig,
} from '../../lib/config.ts';

export interface StreamConfig extends CommonConfig {
  readonly host: string;
  readonly port: number;
  readonly databaseUrl: string;
  readonly pepperPath: string;
  /** Origins of browser pages that may connect, beside those of this machine. */
  readonly origins: readonly string[];
  /** File of days that are not as the calendars have them, such as a typhoon's. */
  readonly calendarOverrides: string | undefined;
  /** Where symbols trade, beside the forms that are built in. */
  readonly venueRules: VenueRules;
  /** The process serves one dedicated socket of one account, and nothing else. */
  readonly dedicated: { readonly name: string; readonly accountId: string } | undefined;
}

/**
 * Reads the settings of the stream process. Allow-lists of keys are compared with the address that
 * connects: behind a proxy that is the proxy's.
 */
export function readStreamConfig(env: NodeJS.ProcessEnv): StreamConfig {
  return readConfig(env, (reader) => ({
    dedicated: readDedicated(reader),
    ...readCommonConfig(reader),
    host: reader.text('STREAM_HOST', '127.0.0.1'),
    port: reader.integer('STREAM_PORT', { min: 0, max: 65_535, fallback: 8082 }),
    databaseUrl: reader.text('DATABASE_URL'),
    calendarOverrides: reader.optional('CALENDAR_OVERRIDES'),
    venueRules: readVenueRules(reader.optional('VENUE_RULES')),
    pepperPath: readPepperPath(reader),
    origins: reader
      .text('STREAM_ORIGINS', '')
      .split(/[\s,]+/)
      .filter(Boolean),
  }));
}

/** Set by the supervisor of dedicated sockets. */
function readDedicated(reader: ConfigReader): StreamConfig['dedicated'] {
  const name = reader.optional('DEDICATED_NAME');
  return name === undefined ? undefined : { name, accountId: reader.text('DEDICATED_ACCOUNT') };
}
