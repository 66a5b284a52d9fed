import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { writeFileAtomically } from '../../lib/files/write-file.ts';
import { POSTGRES_ROLES, roleName, rolesScript } from '../../lib/postgres/roles.ts';
import { childEnvironment } from './config.ts';
import type { EmbeddedEngine, EngineDeps } from './embedded-engine.ts';
import type { Passwords } from './passwords.ts';
import { findBinaries } from './postgres-binaries.ts';
import { chooseOwner, type Owner } from './postgres-owner.ts';

export const DATABASE = 'pillole';
const READY_TIMEOUT_MS = 30_000;

/** The address for the role that owns the tables. */
export function postgresAddress(port: number, passwords: Passwords): string {
  const owner = roleName('migrate');
  return `postgres://${owner}:${passwords[owner]}@127.0.0.1:${port}/${DATABASE}`;
}

/**
 * Prepares the embedded PostgreSQL: binaries from npm, passwords (SCRAM) on loopback, database
 * `pillole`. Creates the cluster if there is none.
 */
export async function embeddedPostgres({
  layout,
  ports,
  preferredPorts,
  passwords,
  isTemporary,
  signal,
}: EngineDeps): Promise<EmbeddedEngine> {
  const port = await ports.allocate('postgres', preferredPorts.postgres);
  const folder = layout.data('postgres');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const owner = chooseOwner(await findBinaries(), folder);
  const password = passwords.postgres;
  if (!existsSync(owner.cluster)) await initialise(owner, password, signal);
  await requirePasswords(owner, password, signal);
  let isPrepared = false;
  return {
    address: postgresAddress(port, passwords),
    child: () => {
      removeStalePidFile(owner.cluster);
      const [command, args] = owner.command(
        'postgres',
        serverArguments(owner.cluster, port, isTemporary),
        true,
      );
      const env = { LC_ALL: 'C', TZ: 'UTC' };
      // SIGINT is PostgreSQL's fast shutdown; SIGTERM waits until every client has left.
      return {
        command,
        args,
        cwd: owner.cluster,
        env,
        stopSignal: 'SIGINT',
        bringsPdeathsig: true,
      };
    },
    async isReady() {
      if (!isPrepared) await preparePostgres(port, passwords);
      isPrepared = true;
      return withServer(port, passwords, DATABASE, async () => true);
    },
    readyTimeoutMs: READY_TIMEOUT_MS,
  };
}

/** Initialises a temporary folder and renames it, so that a killed initdb leaves no partial cluster. */
async function initialise(
  owner: Owner,
  password: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const temporary = `${owner.cluster}.part`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { mode: 0o700 });
  owner.give(temporary);
  const passwordFile = `${owner.cluster}.password`;
  writeFileAtomically(passwordFile, `${password}\n`);
  owner.give(passwordFile);
  const [command, args] = owner.command('initdb', [
    ...['--pgdata', temporary, '--username', 'postgres', '--auth', 'scram-sha-256'],
    ...['--pwfile', passwordFile],
    ...['--encoding', 'UTF8', '--locale', 'C', '--no-sync', '--no-instructions'],
  ]);
  try {
    await promisify(execFile)(command, [...args], {
      env: childEnvironment({ LC_ALL: 'C' }),
      signal,
    });
  } finally {
    rmSync(passwordFile, { force: true });
  }
  writeHostRules(owner, temporary, password);
  renameSync(temporary, owner.cluster);
}

/**
 * Closes a cluster that lets everybody in, or whose password was lost. In single-user mode, no port
 * is open until the password is set.
 */
async function requirePasswords(
  owner: Owner,
  password: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { cluster } = owner;
  if (readFileSync(path.join(cluster, 'pg_hba.conf'), 'utf8') === hostRules(password)) return;
  removeStalePidFile(cluster);
  const flags = ['--single', '-D', cluster, '-c', 'exit_on_error=on', 'postgres'];
  const [command, args] = owner.command('postgres', flags);
  const server = spawn(command, args, {
    cwd: cluster,
    env: childEnvironment({ LC_ALL: 'C', TZ: 'UTC' }),
    stdio: ['pipe', 'ignore', 'ignore'],
    signal,
  });
  server.stdin.on('error', () => {}); // the exit code reports it
  server.stdin.end(`ALTER ROLE postgres PASSWORD '${password}'\n`);
  const [code] = (await once(server, 'close')) as [number | null];
  if (code !== 0) throw new Error(`PostgreSQL cannot set the password of ${cluster} (${code}).`);
  writeHostRules(owner, cluster, password);
}

function writeHostRules(owner: Owner, cluster: string, password: string): void {
  const file = path.join(cluster, 'pg_hba.conf');
  writeFileAtomically(file, hostRules(password));
  owner.give(file);
}

/** Who may connect. The digest shows whether the server knows this password. */
function hostRules(password: string): string {
  const digest = createHash('sha256').update(password).digest('hex');
  return `# Written by the launcher; password ${digest}
host all       postgres 127.0.0.1/32 scram-sha-256
host ${DATABASE}   all      127.0.0.1/32 scram-sha-256
`;
}

function serverArguments(cluster: string, port: number, isTemporary: boolean): string[] {
  const settings: Record<string, string | number> = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: 200,
    log_checkpoints: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // The role and the process: a right that a process lacks shows here.
    log_line_prefix: '%m [%p] %q%u %a ',
    // The detail of an error repeats values of rows, e.g. a duplicate e-mail address.
    log_error_verbosity: 'terse',
    log_min_error_statement: 'panic',
    ...(isTemporary ? { fsync: 'off', full_page_writes: 'off' } : {}),
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  return ['-D', cluster, ...flags];
}

/**
 * Removes the pid file that a kill -9 leaves, unless a postgres of this cluster holds it: PostgreSQL
 * refuses to start if another process has taken that pid.
 */
function removeStalePidFile(cluster: string): void {
  const file = path.join(cluster, 'postmaster.pid');
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, 'utf8').split('\n', 1)[0]);
  if (!isPostgresOf(pid, cluster)) rmSync(file, { force: true });
}

function isPostgresOf(pid: number, cluster: string): boolean {
  if (process.platform !== 'linux') return true; // elsewhere PostgreSQL's own check decides
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(cluster);
  } catch {
    return false;
  }
}

/** Creates the database and the roles, and sets the passwords of the roles. */
export async function preparePostgres(port: number, passwords: Passwords): Promise<void> {
  await withServer(port, passwords, 'postgres', async (client) => {
    const found = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (found.rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  });
  const setPasswords = POSTGRES_ROLES.map((role) => roleName(role)).map(
    (name) => `ALTER ROLE ${name} PASSWORD ${pg.escapeLiteral(passwords[name])};`,
  );
  await withServer(port, passwords, DATABASE, (client) =>
    // Stretching is for guessable passwords, and would cost each connection milliseconds.
    client.query(`SET scram_iterations = 1; ${rolesScript()}\n${setPasswords.join('\n')}`),
  );
}

/** Connects as the superuser, which only the launcher does. */
async function withServer<T>(
  port: number,
  passwords: Passwords,
  database: string,
  use: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: 'postgres',
    password: passwords.postgres,
    database,
    connectionTimeoutMillis: 2_000,
  });
  client.on('error', () => {}); // the connect or query call reports it
  try {
    await client.connect();
    return await use(client);
  } finally {
    await client.end().catch(() => {});
  }
}
