import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { GRANT_S } from '../../domain/access/gap-fill-grant.ts';
import {
  formatPeppers,
  PEPPERS_MAX,
  type PepperVersion,
  readPepper,
  VERSION_MAX,
} from '../../domain/access/pepper.ts';
import { processesWithout } from '../../domain/access/pepper-holders.ts';
import { countHashed, countSealed, reseal } from '../../domain/access/reseal.ts';
import { writeAudit } from '../../domain/accounts/audit.ts';
import { ConfigError } from '../../lib/config/config.ts';
import { AdminError, type AdminSession } from './admin-session.ts';
import { replacePrivateFile } from './private-file.ts';

const PEPPER_BYTES = 32;
const PROCESSES_NAMED_MAX = 10;

/** The versions of the file, newest first, and what still depends on each. */
export async function listPeppers({ db }: AdminSession, file: string) {
  const [versions, sealed, hashed] = [
    readPepperFile(file).all(),
    await countSealed(db),
    await countHashed(db),
  ];
  const { version: newest } = readPepperFile(file).current();
  const unknownTo = await Promise.all(versions.map((one) => processesWithout(db, one.version)));
  return versions.map(({ version, activeFromMs }, n) => ({
    version,
    state: version === newest ? 'current' : version > newest ? 'waiting' : 'accepted',
    activeFrom: new Date(activeFromMs).toISOString(),
    sealedTexts: sealed.get(version) ?? 0,
    liveKeys: hashed.get(version)?.keys ?? 0,
    keysLastUsed: hashed.get(version)?.lastUsedAt ?? null,
    unknownTo: unknownTo[n],
  }));
}

/** Adds a version, which every process accepts at once and uses for new writes after `activeInS`. */
export function addPepper(session: AdminSession, file: string, activeInS: number) {
  return changeFile(session, file, 'pepper.added', async (versions) => {
    const version = versions[0]!.version + 1;
    await refuseUnknown(session, file, version - 1);
    if (versions[0]!.activeFromMs > Date.now()) {
      throw new AdminError(`Version ${version - 1} is not active yet: wait, see "pepper list".`);
    }
    if (versions.length >= PEPPERS_MAX || version > VERSION_MAX) {
      throw new AdminError(
        `${file} cannot hold another version: retire old ones first, see "pepper list".`,
      );
    }
    const activeFromMs = Date.now() + activeInS * 1_000;
    const added = { version, activeFromMs, bytes: randomBytes(PEPPER_BYTES) };
    return { version, versions: [added, ...versions] };
  });
}

/**
 * Seals all secrets again under the current version.
 * @throws AdminError if some are left, or if a process could not open them
 */
export async function resealAll(session: AdminSession, file: string) {
  const { db, operator } = session;
  const pepper = readPepperFile(file);
  const { version } = pepper.current();
  await refuseUnknown(session, file, version);
  const { resealed, skipped } = await reseal(db, pepper);
  const detail = { resealed, skipped };
  const entry = { accountId: null, action: 'pepper.resealed', target: String(version), detail };
  if (resealed > 0) await writeAudit(db, { ...operator, ...entry });
  if (skipped === 0) return { version, resealed };
  throw new AdminError(`${skipped} secrets were being changed by their owners: run it again.`);
}

/** Removes a version on which nothing depends any more. */
export function retirePepper(session: AdminSession, file: string, version: number) {
  return changeFile(session, file, 'pepper.retired', async (versions) => {
    const { version: current } = readPepperFile(file).current();
    const next = versions.findLast((one) => one.version > version);
    if (!versions.some((one) => one.version === version)) {
      throw new AdminError(`${file} has no version ${version}: see "pepper list".`);
    }
    if (version >= current || next === undefined) {
      throw new AdminError(`Version ${version} is in use for new writes: run "pepper add" first.`);
    }
    await refuseUnknown(session, file, current);
    await refuseUsed(session, version);
    const signedUntil = new Date(next.activeFromMs + GRANT_S * 1_000);
    if (signedUntil.getTime() > Date.now()) {
      throw new AdminError(
        `Grants signed with version ${version} are valid until ${signedUntil.toISOString()}: retire the version then.`,
      );
    }
    return { version, versions: versions.filter((one) => one.version !== version) };
  });
}

/** Processes read other copies of the file: one that lacks a version refuses what the others write. */
async function refuseUnknown({ db }: AdminSession, file: string, version: number): Promise<void> {
  const processes = await processesWithout(db, version);
  if (processes.length === 0) return;
  const named = processes.slice(0, PROCESSES_NAMED_MAX).join(', ');
  throw new AdminError(
    `${processes.length} running processes do not accept version ${version} (${named}): copy ${file} ` +
      'to their KEY_PEPPER_FILE, and run this again some seconds later. Nothing has changed.',
  );
}

async function refuseUsed({ db }: AdminSession, version: number): Promise<void> {
  const sealed = (await countSealed(db)).get(version) ?? 0;
  if (sealed > 0) {
    throw new AdminError(
      `${sealed} secrets are sealed with version ${version}: run "pepper reseal" first.`,
    );
  }
  const keys = (await countHashed(db)).get(version)?.keys ?? 0;
  if (keys > 0) {
    throw new AdminError(
      `${keys} live API keys are hashed with version ${version}: each is renewed by its next use. ` +
        'Wait, or revoke the keys that are no longer used.',
    );
  }
}

/** Makes one change at a time over all machines, in one transaction with its audit entry. */
function changeFile(
  { db, operator }: AdminSession,
  file: string,
  action: string,
  change: (
    versions: readonly PepperVersion[],
  ) => Promise<{ readonly version: number; readonly versions: readonly PepperVersion[] }>,
) {
  return db.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtext('pepper'))`.execute(tx);
    const { version, versions } = await change(readPepperFile(file).all());
    const active = versions.find((one) => one.version === version)?.activeFromMs;
    const activeFrom = active === undefined ? undefined : new Date(active).toISOString();
    const detail = activeFrom === undefined ? {} : { active_from: activeFrom };
    await writeAudit(tx, { ...operator, accountId: null, action, target: String(version), detail });
    replacePrivateFile(file, formatPeppers(versions));
    return { file, version, activeFrom, versions: versions.map((one) => one.version) };
  });
}

function readPepperFile(file: string) {
  try {
    return readPepper(file);
  } catch (error) {
    if (error instanceof ConfigError) throw new AdminError(error.message);
    throw error;
  }
}
