/** Reads settings of one process from the environment; collects every fault before it throws. */
export interface ConfigReader {
  text(name: string, fallback?: string): string;
  optional(name: string): string | undefined;
  integer(name: string, bounds: { min: number; max: number; fallback?: number }): number;
  choice<T extends string>(name: string, choices: readonly T[], fallback: T): T;
}

/** All settings of a process that are wrong or missing, in one message. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Runs `read` over the environment and returns its result.
 * @throws ConfigError naming every faulty variable and what it must be.
 */
export function readConfig<T>(env: NodeJS.ProcessEnv, read: (reader: ConfigReader) => T): T {
  const faults: string[] = [];
  const fail = <V>(fault: string, value: V): V => {
    faults.push(fault);
    return value;
  };
  const get = (name: string) => (env[name] === '' ? undefined : env[name]);
  const reader: ConfigReader = {
    text(name, fallback) {
      return get(name) ?? fallback ?? fail(`${name} is not set`, '');
    },
    optional: get,
    integer(name, { min, max, fallback }) {
      const text = get(name);
      if (text === undefined) return fallback ?? fail(`${name} is not set`, min);
      const value = Number(text);
      if (Number.isInteger(value) && value >= min && value <= max) return value;
      return fail(`${name} must be a whole number from ${min} to ${max}, not "${text}"`, min);
    },
    choice(name, choices, fallback) {
      const text = get(name);
      if (text === undefined) return fallback;
      const found = choices.find((choice) => choice === text);
      return found ?? fail(`${name} must be one of ${choices.join(', ')}, not "${text}"`, fallback);
    },
  };
  const config = read(reader);
  if (faults.length > 0) throw new ConfigError(`${faults.join('; ')}.`);
  return config;
}

export interface CommonConfig {
  readonly kafkaBrokers: readonly string[];
  readonly registryUrl: string;
  /** Prefix of topics, subjects, groups and databases; empty outside tests. */
  readonly namespace: string;
  readonly logLevel: string;
  readonly metricsHost: string;
  /** Port of /metrics, /health and /ready; 0 takes a free one. */
  readonly metricsPort: number;
}

/** The settings that every process has. */
export function readCommonConfig(reader: ConfigReader): CommonConfig {
  return {
    kafkaBrokers: reader.text('KAFKA_BROKERS').split(/\s*,\s*/),
    registryUrl: reader.text('SCHEMA_REGISTRY_URL'),
    namespace: reader.text('PILLOLE_NAMESPACE', ''),
    logLevel: reader.choice('LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error'], 'info'),
    metricsHost: reader.text('METRICS_HOST', '127.0.0.1'),
    metricsPort: reader.integer('METRICS_PORT', { min: 0, max: 65_535, fallback: 0 }),
  };
}

/** Whether an address can be reached from this machine alone. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
