import { existsSync } from 'node:fs';
import os from 'node:os';
import type { Requester } from '../../domain/accounts/audit.ts';
import { ConfigError } from '../../lib/config/config.ts';
import { defaultStackFile, readStackFile } from '../../lib/config/stack-file.ts';
import { silentLog } from '../../lib/log/log.ts';
import { type Database, openDatabase } from '../../lib/postgres/database.ts';
import { readAdminConfig } from './config.ts';

/** A command that fails; the message is one sentence that says what to do. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
}

/** The database, and the operator for the audit log. */
export interface AdminSession {
  readonly db: Database;
  readonly operator: Requester;
}

/**
 * Runs `work` on the database that the environment names, else on that of the local stack.
 * @throws AdminError
 */
export async function withAdminSession<T>(work: (session: AdminSession) => Promise<T>): Promise<T> {
  const { databaseUrl, namespace } = configOf();
  const url = databaseUrl ?? localDatabaseUrl();
  const options = { url, namespace, name: 'admin', log: silentLog, connectionsMax: 3 };
  let db: Database | undefined;
  try {
    db = openDatabase(options);
    return await work({ db, operator: { actor: `operator:${login()}` } });
  } catch (error) {
    throw explainDatabaseError(error, url);
  } finally {
    await db?.destroy();
  }
}

function configOf() {
  try {
    return readAdminConfig();
  } catch (error) {
    if (error instanceof ConfigError)
      throw new AdminError(`Correct the settings: ${error.message}`);
    throw error;
  }
}

function localDatabaseUrl(): string {
  if (!existsSync(defaultStackFile)) {
    throw new AdminError('No database is configured: run "npm start", or set DATABASE_URL.');
  }
  return readStackFile().postgres;
}

function login(): string {
  try {
    return os.userInfo().username;
  } catch {
    // A container may run under a user id without a name.
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Names only the host of the address: the rest may hold a password. */
function explainDatabaseError(error: unknown, url: string): unknown {
  if (error instanceof AdminError) return error;
  const { code, message = '' } = error as { code?: string; message?: string };
  const { host } = new URL(url);
  if (code === '42P01' || code === '3F000') {
    return new AdminError('The tables do not exist: run "npm run provision" first.');
  }
  if (code?.startsWith('28') || code === '3D000') {
    return new AdminError(`PostgreSQL at ${host} rejects DATABASE_URL (${code}): correct it.`);
  }
  if (/^(?:E[A-Z]+|08...|57P0.)$/.test(code ?? '') || /timeout|terminated/i.test(message)) {
    const why = code ?? 'timeout';
    return new AdminError(
      `PostgreSQL at ${host} does not answer (${why}): start it, or set DATABASE_URL.`,
    );
  }
  return error;
}
