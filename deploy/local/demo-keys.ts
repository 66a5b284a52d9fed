import { readPepper } from '../../domain/access/pepper.ts';
import type { Tier } from '../../domain/access/tiers.ts';
import {
  type DemoKeys,
  ensureDemoKeys,
  findDemoAccount,
} from '../../domain/accounts/demo-accounts.ts';
import { createKeys } from '../../domain/accounts/keys.ts';
import { silentLog } from '../../lib/log/log.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import type { LauncherConfig } from './config.ts';
import type { EngineKind } from './engines.ts';
import type { Addresses } from './processes.ts';
import type { StackLayout } from './stack-layout.ts';

/**
 * Whether to make demo accounts. Their keys open every tier, so someone else's database gets them
 * only on request.
 */
export function shouldMakeDemoAccounts(
  setting: LauncherConfig['demoAccounts'],
  postgres: EngineKind,
): boolean {
  return setting === 'auto' ? postgres !== 'external' : setting === 'yes';
}

/** The plan whose stream the page shows to everybody on this machine. */
const SHOWN_TIER: Tier = 'pro';

/**
 * Makes a demo account per tier on a fresh database and stores the keys in the stack's folder.
 * @returns `keys` = new keys, to be shown this once; undefined if the stored keys work.
 *   `shownId` = the account whose market the page shows; undefined if it was closed.
 */
export async function makeDemoAccounts(
  layout: StackLayout,
  { postgresUrls, namespace }: Pick<Addresses, 'postgresUrls' | 'namespace'>,
): Promise<{ readonly keys: DemoKeys | undefined; readonly shownId: string | undefined }> {
  const url = postgresUrls.admin;
  const db = openDatabase({ url, namespace, name: 'demo-keys', log: silentLog });
  try {
    const keys = createKeys({ db, pepper: readPepper(layout.pepper) });
    const newKeys = await ensureDemoKeys({ db, keys, file: layout.demoKeys });
    return { keys: newKeys, shownId: await findDemoAccount(db, SHOWN_TIER) };
  } finally {
    await db.destroy();
  }
}
