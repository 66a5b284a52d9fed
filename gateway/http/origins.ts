import type { ConfigReader } from '../../lib/config/config.ts';
import { isLocalOrigin } from '../../lib/http/local-request.ts';

const SETTING = 'STREAM_ORIGINS';
const ORIGINS_MAX = 100;

/** Origins whose web pages may open sockets and read the API, besides pages of this machine. */
export function readOrigins(reader: ConfigReader): readonly string[] {
  const origins = reader
    .get(SETTING)
    .split(/[\s,]+/)
    .filter(Boolean);
  for (const origin of origins.filter((one) => !isWebOrigin(one))) {
    reader.fault(`${SETTING} must list origins such as https://desk.example, not "${origin}"`);
  }
  if (origins.length > ORIGINS_MAX) {
    reader.fault(`${SETTING} lists ${origins.length} origins, limit ${ORIGINS_MAX}`);
  }
  return origins;
}

/**
 * Whether a browser page may connect: pages of this machine and of the allow-list. Programs send no
 * Origin and may connect. A value that is not an origin is refused.
 */
export function isOriginAllowed(origin: string, allowed: readonly string[]): boolean {
  return origin === '' || allowed.includes(origin) || isLocalOrigin(origin);
}

/** Browsers send an origin without path and in lower case; another form would never match. */
function isWebOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
