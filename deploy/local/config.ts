import { readConfig } from '../../lib/config/config.ts';
import { readKafkaSecurity } from '../../lib/config/kafka-cluster.ts';

/** The variable that names an existing server for an engine. */
export const ENGINE_VARIABLES = {
  kafka: 'KAFKA_BROKERS',
  registry: 'SCHEMA_REGISTRY_URL',
  clickhouse: 'CLICKHOUSE_URL',
  postgres: 'DATABASE_URL',
} as const;

export type EngineName = keyof typeof ENGINE_VARIABLES;

export type LauncherConfig = ReturnType<typeof readLauncherConfig>;
/** The part of the settings that engines need. */
export type EnginesConfig = Pick<
  LauncherConfig,
  'external' | 'dockerHost' | 'javaHome' | 'namespace'
>;

/** Reads the settings of the launcher; every setting has a default. */
export function readLauncherConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(env, (reader) => {
    const named = Object.entries(ENGINE_VARIABLES).map(([name, variable]) => [
      name,
      reader.get(variable),
    ]);
    const external: Readonly<Partial<Record<EngineName, string>>> = Object.fromEntries(
      named.filter(([, address]) => address !== undefined),
    );
    return {
      /** Addresses of existing engines, which are used instead of starting one. */
      external,
      /** Of connections to a Kafka that KAFKA_BROKERS names. */
      kafkaSecurity: readKafkaSecurity(reader, external.kafka?.split(/\s*,\s*/) ?? []),
      /** undefined = a socket at one of the usual paths. */
      dockerHost: reader.get('DOCKER_HOST'),
      /** undefined = the java in PATH. */
      javaHome: reader.get('JAVA_HOME'),
      /** Prefix of topics, subjects, groups and databases; empty outside tests. */
      namespace: reader.get('PILLOLE_NAMESPACE'),
      /** Whether to make demo accounts; `auto` = unless PostgreSQL is an existing server. */
      demoAccounts: reader.get('DEMO_ACCOUNTS'),
    };
  });
}

/** The environment of a child: our own, and `added`. */
export function childEnvironment(added: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { ...process.env, ...added };
}
