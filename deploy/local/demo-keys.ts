import { readPepper } from '../../lib/access/pepper.ts';
import type { Tier } from '../../lib/access/tiers.ts';
import { ensureDemoKeys } from '../../lib/accounts/demo.ts';
import { createKeys } from '../../lib/accounts/keys.ts';
import { silentLog } from '../../lib/log.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import type { LauncherConfig } from './config.ts';
import type { EngineKind } from './engines.ts';
import type { Place } from './place.ts';
import type { Addresses } from './processes.ts';

/** Their keys open every tier: on a database of somebody else only when it is asked for. */
export function wantsDemoAccounts(
  asked: LauncherConfig['demoAccounts'],
  postgres: EngineKind,
): boolean {
  return asked === 'auto' ? postgres !== 'external' : asked === 'yes';
}

/**
 * Makes a demo account per tier on a fresh database, and keeps their keys in the stack's folder.
 * @returns the keys that were made, to be shown this once; undefined when there were good ones
 */
export async function makeDemoKeys(
  place: Place,
  { postgresUrl, namespace }: Addresses,
): Promise<Readonly<Record<Tier, string>> | undefined> {
  const db = openDatabase({ url: postgresUrl, namespace, name: 'demo-keys', log: silentLog });
  try {
    const keys = createKeys({ db, pepper: readPepper(place.pepper) });
    return await ensureDemoKeys({ db, keys, file: place.demoKeys });
  } finally {
    await db.destroy();
  }
}
