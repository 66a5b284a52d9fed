import { inject } from 'vitest';
import type { EngineName } from '../deploy/local/config.ts';
import type { Passwords, PostgresUrls } from '../deploy/local/passwords.ts';
import { PROCESSES, type ProcessSpec } from '../deploy/local/processes.ts';
import type { PostgresRole } from '../lib/postgres/roles.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Addresses of the running engines. */
    engines: Readonly<Partial<Record<EngineName, string>>>;
    /** The address of PostgreSQL for each role; the same for all on a server that was given. */
    postgresUrls: PostgresUrls;
    /** Passwords of the engines that this run has started. */
    passwords: Passwords;
    pepperFile: string;
  }
}

/**
 * The address of an engine of this test run. Pass the name as a string literal: the run starts the
 * engines that the selected files name in such calls (`testing/test-files.ts`).
 * @throws Error when the engine was not started
 */
export function testEngine(name: EngineName): string {
  const address = inject('engines')?.[name];
  if (address === undefined) throw new Error(`This run has not started ${name}.`);
  return address;
}

/** File with the pepper of test keys. */
export function testPepperFile(): string {
  return inject('pepperFile');
}

/**
 * Gives a process of the platform the address of its own role, as the launcher does; the address in
 * `env` may be that of a proxy. Other environments stay as they are.
 */
export function withOwnRole(
  entry: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const role = roleOfProcess(entry, args);
  if (env.DATABASE_URL === undefined || role === undefined) return env;
  return { ...env, DATABASE_URL: asRole(env.DATABASE_URL, role) };
}

/** An address of the owner of the tables as that of another role; any other address stays. */
export function asRole(databaseUrl: string, role: PostgresRole): string {
  const urls = inject('postgresUrls');
  if (urls === undefined || !URL.canParse(databaseUrl)) return databaseUrl;
  const { migrate, [role]: wanted } = urls;
  const [url, owner, own] = [new URL(databaseUrl), new URL(migrate), new URL(wanted)];
  if (url.username !== owner.username) return databaseUrl;
  url.username = own.username;
  url.password = own.password;
  return url.href;
}

function roleOfProcess(entry: string, args: readonly string[]): PostgresRole | undefined {
  const isIt = (spec: ProcessSpec) =>
    spec.entry === entry && spec.args.every((arg, at) => args[at] === arg);
  return PROCESSES.find(isIt)?.postgres;
}
