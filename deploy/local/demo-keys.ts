import { existsSync, readFileSync } from 'node:fs';
import { readPepper } from '../../domain/access/pepper.ts';
import type { Tier } from '../../domain/access/tiers.ts';
import {
  type DemoKeys,
  ensureDemoKeys,
  findDemoAccount,
} from '../../domain/accounts/demo-accounts.ts';
import { createKeys, type Keys } from '../../domain/accounts/keys.ts';
import { writeFileAtomically } from '../../lib/files/write-file.ts';
import { silentLog } from '../../lib/log/log.ts';
import { type Database, openDatabase } from '../../lib/postgres/database.ts';
import type { LauncherConfig } from './config.ts';
import type { EngineKind } from './engines.ts';
import type { Addresses } from './processes.ts';
import { SetupError } from './setup-error.ts';
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
  hasCanary = false,
): Promise<{ readonly keys: DemoKeys | undefined; readonly shownId: string | undefined }> {
  const url = postgresUrls.admin;
  const db = openDatabase({ url, namespace, name: 'demo-keys', log: silentLog });
  try {
    const keys = createKeys({ db, pepper: readPepper(layout.pepper) });
    const newKeys = await ensureDemoKeys({ db, keys, file: layout.demoKeys });
    if (hasCanary) await ensureCanaryKey(keys, db, layout.canaryKey);
    return { keys: newKeys, shownId: await findDemoAccount(db, SHOWN_TIER) };
  } finally {
    await db.destroy();
  }
}

/** Ensures that the file holds a live key of the Institutional demo account, for the canary. */
async function ensureCanaryKey(keys: Keys, db: Database, file: string): Promise<void> {
  const accountId = await findDemoAccount(db, 'institutional');
  if (accountId === undefined) throw new SetupError('--canary needs the demo account.');
  const known = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (known !== '' && (await keys.recognise(accountId, known)) !== undefined) return;
  const scopes = ['read', 'stream', 'webhooks:write'] as const;
  const made = await keys.create({ actor: 'system', accountId, name: 'canary', scopes });
  if (made.kind !== 'ok') throw new SetupError(`No key for the canary: ${made.kind}.`);
  writeFileAtomically(file, `${made.key}\n`);
}
