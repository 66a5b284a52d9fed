import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { type Child, startChild } from './child.ts';
import { childEnvironment } from './config.ts';
import type { EmbeddedEngine, EngineSetting } from './embedded.ts';
import { findBinaries } from './postgres-binaries.ts';
import { chooseOwner, type Owner } from './postgres-owner.ts';
import { waitUntil } from './wait.ts';

const DATABASE = 'pillole';
const READY_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 4_000;

/**
 * The embedded PostgreSQL: binaries from npm, trust on loopback, database `pillole`. Creates the
 * cluster when there is none; `start` may be called again after it died.
 */
export async function embeddedPostgres(setting: EngineSetting): Promise<EmbeddedEngine> {
  const port = await setting.ports.choose('postgres', setting.wantedPorts.postgres);
  const folder = setting.place.data('postgres');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const owner = chooseOwner(await findBinaries(), folder);
  if (!existsSync(owner.cluster)) await initialise(owner, setting.signal);
  return {
    address: `postgres://postgres@127.0.0.1:${port}/${DATABASE}`,
    start: () => {
      removeStalePidFile(owner.cluster);
      const [command, args] = owner.command('postgres', serverArguments(owner.cluster, port), true);
      return startChild({
        name: 'postgres',
        command,
        args,
        cwd: owner.cluster,
        env: { LC_ALL: 'C', TZ: 'UTC' },
        logFolder: setting.place.logs,
        runFolder: setting.place.run,
        // SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for every client to leave.
        stopSignal: 'SIGINT',
        stopTimeoutMs: STOP_TIMEOUT_MS,
        bringsPdeathsig: true,
      });
    },
    ready: (child: Child) =>
      waitUntil('postgres', () => ensureDatabase(port), {
        timeoutMs: READY_TIMEOUT_MS,
        gaveUp: () => (child.exit() === undefined ? undefined : `it ended, see ${child.logFile}`),
      }),
  };
}

/** Into a folder beside, then renamed: a killed initdb leaves no half cluster. */
async function initialise(owner: Owner, signal: AbortSignal | undefined): Promise<void> {
  const beside = `${owner.cluster}.part`;
  rmSync(beside, { recursive: true, force: true });
  const [command, args] = owner.command('initdb', [
    ...['--pgdata', beside, '--username', 'postgres', '--auth', 'trust'],
    ...['--encoding', 'UTF8', '--locale', 'C', '--no-sync', '--no-instructions'],
  ]);
  await promisify(execFile)(command, [...args], {
    env: childEnvironment({ LC_ALL: 'C' }),
    signal,
  });
  renameSync(beside, owner.cluster);
}

function serverArguments(cluster: string, port: number): string[] {
  const settings: Record<string, string | number> = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: 200,
    log_checkpoints: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // The detail of an error repeats values of rows, e.g. an e-mail address that is there twice.
    log_error_verbosity: 'terse',
    log_min_error_statement: 'panic',
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  return ['-D', cluster, ...flags];
}

/**
 * After kill -9 the pid file stays, and PostgreSQL refuses to start when another process got that
 * pid since. It is removed unless a postgres of this very folder holds it.
 */
function removeStalePidFile(cluster: string): void {
  const file = path.join(cluster, 'postmaster.pid');
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, 'utf8').split('\n', 1)[0]);
  if (!isPostgresOf(pid, cluster)) rmSync(file, { force: true });
}

function isPostgresOf(pid: number, cluster: string): boolean {
  if (process.platform !== 'linux') return true; // PostgreSQL's own check decides there
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(cluster);
  } catch {
    return false;
  }
}

async function ensureDatabase(port: number): Promise<boolean> {
  const client = new pg.Client({
    ...{ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' },
    connectionTimeoutMillis: 2_000,
  });
  client.on('error', () => {}); // the connect or query call reports it
  try {
    await client.connect();
    const found = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (found.rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
    return true;
  } finally {
    await client.end().catch(() => {});
  }
}
