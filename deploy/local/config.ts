import { readConfig } from '../../lib/config.ts';

/** The variable that names a server of one's own for an engine. */
export const ENGINE_VARIABLES = {
  kafka: 'KAFKA_BROKERS',
  registry: 'SCHEMA_REGISTRY_URL',
  clickhouse: 'CLICKHOUSE_URL',
  postgres: 'DATABASE_URL',
} as const;

export type EngineName = keyof typeof ENGINE_VARIABLES;

export interface EnginesConfig {
  /** Addresses of engines that run already: they are used, and none of their kind is started. */
  readonly external: Readonly<Partial<Record<EngineName, string>>>;
  /** DOCKER_HOST; undefined looks for a socket at the usual places. */
  readonly dockerHost: string | undefined;
  /** JAVA_HOME; undefined takes the java of the PATH. */
  readonly javaHome: string | undefined;
}

export interface LauncherConfig extends EnginesConfig {
  /** Prefix of topics, subjects, groups and databases; empty outside tests. */
  readonly namespace: string;
  /** Whether demo accounts are made; `auto`: unless PostgreSQL is one of somebody else. */
  readonly demoAccounts: 'auto' | 'yes' | 'no';
}

/** Reads the settings of the launcher; everything has a default. */
export function readLauncherConfig(env: NodeJS.ProcessEnv = process.env): LauncherConfig {
  return readConfig(env, (reader) => {
    const named = Object.entries(ENGINE_VARIABLES).map(([name, variable]) => [
      name,
      reader.optional(variable),
    ]);
    return {
      external: Object.fromEntries(named.filter(([, address]) => address !== undefined)),
      dockerHost: reader.optional('DOCKER_HOST'),
      javaHome: reader.optional('JAVA_HOME'),
      namespace: reader.text('PILLOLE_NAMESPACE', ''),
      demoAccounts: reader.choice('DEMO_ACCOUNTS', ['auto', 'yes', 'no'], 'auto'),
    };
  });
}

/** What a child is told: all that we were told ourselves, and `added`. */
export function childEnvironment(added: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { ...process.env, ...added };
}
