import { readPepper } from '../../lib/access/pepper.ts';
import type { Tier } from '../../lib/access/tiers.ts';
import { type DemoKeys, ensureDemoKeys, findDemoAccount } from '../../lib/accounts/demo.ts';
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

/** The plan whose stream the page shows to everybody on this machine. */
const SHOWN_TIER: Tier = 'pro';

export interface DemoAccounts {
  /** Keys that were made now, to be shown this once; undefined when there were good ones. */
  readonly keys: DemoKeys | undefined;
  /** Whose market the page shows; undefined when the account was closed. */
  readonly shownId: string | undefined;
}

/** Makes a demo account per tier on a fresh database, and keeps their keys in the stack's folder. */
export async function makeDemoAccounts(
  place: Place,
  { postgresUrl, namespace }: Addresses,
): Promise<DemoAccounts> {
  const db = openDatabase({ url: postgresUrl, namespace, name: 'demo-keys', log: silentLog });
  try {
    const keys = createKeys({ db, pepper: readPepper(place.pepper) });
    const made = await ensureDemoKeys({ db, keys, file: place.demoKeys });
    return { keys: made, shownId: await findDemoAccount(db, SHOWN_TIER) };
  } finally {
    await db.destroy();
  }
}
