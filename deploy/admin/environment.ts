import { existsSync } from 'node:fs';
import os from 'node:os';
import type { Requester } from '../../lib/accounts/audit.ts';
import { silentLog } from '../../lib/log.ts';
import { type Database, openDatabase } from '../../lib/postgres/database.ts';
import { defaultStackFile, readStackFile } from '../../lib/stack-file.ts';

/** A task that cannot be done; the message is one sentence that says what to do. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
}

/** What a command works with. */
export interface Desk {
  readonly db: Database;
  readonly operator: Requester;
}

/**
 * Opens the database that the environment names, else the one of the stack that runs here, for as
 * long as `work` takes. Nothing here needs the pepper of the keys.
 * @throws AdminError
 */
export async function atDesk<T>(work: (desk: Desk) => Promise<T>): Promise<T> {
  const url = databaseUrl();
  const namespace = process.env.PILLOLE_NAMESPACE ?? '';
  const options = { url, namespace, name: 'admin', log: silentLog, connectionsMax: 3 };
  let db: Database | undefined;
  try {
    db = openDatabase(options);
    return await work({ db, operator: { actor: `operator:${login()}` } });
  } catch (error) {
    throw explained(error, url);
  } finally {
    await db?.destroy();
  }
}

function databaseUrl(): string {
  const url = process.env.DATABASE_URL;
  if (url !== undefined && url !== '') {
    // The driver reads anything, and goes to a server of this machine with what it does not know.
    if (/^postgres(?:ql)?:\/\//.test(url) && URL.canParse(url)) return url;
    throw new AdminError('The address is not postgres://…: set DATABASE_URL to one that is.');
  }
  if (!existsSync(defaultStackFile)) {
    throw new AdminError('No database is known: run "npm start", or set DATABASE_URL.');
  }
  return readStackFile().postgres;
}

function login(): string {
  try {
    return os.userInfo().username;
  } catch {
    // A container may run as a number that has no name.
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Never the address as it was given: it may hold a password. */
function explained(error: unknown, url: string): unknown {
  if (error instanceof AdminError) return error;
  const { code, message = '' } = error as { code?: string; message?: string };
  const place = new URL(url).host;
  if (code === '42P01' || code === '3F000') {
    return new AdminError('The tables are not there: run "npm run provision" first.');
  }
  if (code?.startsWith('28') || code === '3D000') {
    return new AdminError(`PostgreSQL at ${place} refuses DATABASE_URL (${code}): correct it.`);
  }
  if (/^(?:E[A-Z]+|08...|57P0.)$/.test(code ?? '') || /timeout|terminated/i.test(message)) {
    const why = code ?? 'no answer in time';
    return new AdminError(
      `PostgreSQL at ${place} does not answer (${why}): start it, or set DATABASE_URL.`,
    );
  }
  return error;
}
