import type { Dirent, Stats } from 'node:fs';
import { opendir, rm, stat } from 'node:fs/promises';
import path from 'node:path';

/**
 * Files without a row are deleted when they have not grown for this long: a row may be about to name
 * them. The statements of a slice take 75 s at most.
 */
const ORPHAN_MS = 120_000;
/** Names of one statement; the folder may have any number of files. */
export const NAMES_BATCH = 500;

/** Of these file names, those that a row names. */
type Known = (names: readonly string[]) => Promise<ReadonlySet<string>>;

/**
 * Deletes files that no row names: of dead processes, removed exports and erased accounts. A folder
 * that is not there has none: nothing was exported yet.
 * @throws errors of the database and of the disk
 */
export async function removeOrphans(folder: string, known: Known): Promise<void> {
  const entries = await unlessAbsent(opendir(folder));
  if (entries === undefined) return;
  let batch: string[] = [];
  const flush = async () => {
    const named = await known(batch);
    for (const name of batch.filter((one) => !named.has(one))) {
      await removeOld(path.join(folder, name));
    }
    batch = [];
  };
  for await (const { name } of entries as AsyncIterable<Dirent>) {
    batch.push(name);
    if (batch.length === NAMES_BATCH) await flush();
  }
  if (batch.length > 0) await flush();
}

async function removeOld(file: string): Promise<void> {
  // Another process may have deleted or renamed the file.
  const stats: Stats | undefined = await unlessAbsent(stat(file));
  if (stats !== undefined && Date.now() - stats.mtimeMs > ORPHAN_MS)
    await rm(file, { force: true });
}

async function unlessAbsent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
