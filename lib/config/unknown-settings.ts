import { distance } from 'fastest-levenshtein';
import { SETTING_NAMES, settingOf } from './settings/catalogue.ts';

/** Variables of tests, examples, Compose and the SDK. */
const OF_OTHERS =
  /^PILLOLE_(?:TEST_LONG|VERSION|DOMAIN|KEY|API_KEY|API_URL|STREAM_URL|INGEST_URL|WEBHOOK_SECRET|\w+_PASSWORD)$/;
/** Beginnings that no other program uses, as far as we know. */
const OURS =
  /^(?:PILLOLE|PILLS|INGEST|STREAM|DEDICATED|CANARY|DEMO|WEBHOOK|METRICS|ALERT|SCHEMA_REGISTRY|REBUILD)_/;
/** Kubernetes names the services of a namespace, e.g. INGEST_SERVICE_HOST. */
const SERVICE = /_(?:SERVICE_(?:HOST|PORT)|PORT_\d)/;
/** Typing errors that still point to a setting. */
const DISTANCE_MAX = 2;
const LENGTH_MIN = 8;

const KNOWN: ReadonlySet<string> = new Set(
  SETTING_NAMES.flatMap((name) =>
    settingOf(name).isSecret === true ? [name, `${name}_FILE`] : [name],
  ),
);

/**
 * Warnings of variables that no process reads, although they begin like ours or resemble one of ours;
 * each says which setting was probably meant. The values are not repeated.
 */
export function unknownSettings(env: NodeJS.ProcessEnv): string[] {
  const unknown = Object.keys(env).filter(
    (name) => !KNOWN.has(name) && !OF_OTHERS.test(name) && !SERVICE.test(name),
  );
  return unknown.flatMap((name) => {
    const meant = nearest(name);
    if (meant === undefined && !OURS.test(name)) return [];
    const hint = meant === undefined ? 'see docs/settings.md' : `${meant} was probably meant`;
    return [`${name} is no setting of pillole and has no effect: ${hint}`];
  });
}

function nearest(name: string): string | undefined {
  if (name.length < LENGTH_MIN) return undefined;
  let [best, least]: [string | undefined, number] = [undefined, DISTANCE_MAX + 1];
  for (const known of KNOWN) {
    const far = distance(name.toUpperCase(), known);
    if (far < least) [best, least] = [known, far];
  }
  return best;
}
