import { readFileSync, statSync } from 'node:fs';
import { isLoopback } from '../http/loopback.ts';

/** Settings that hold a secret. A file named by `<NAME>_FILE` may hold the value instead. */
const SECRETS: ReadonlySet<string> = new Set([
  ...['DATABASE_URL', 'CLICKHOUSE_URL', 'SMTP_URL', 'INGEST_CREDENTIAL'],
  ...['WEBHOOK_EGRESS_PROXY', 'ALERT_WEBHOOK_URL'],
]);
const SECRET_FILE_BYTES_MAX = 65_536;

/** Reads the settings of one process from the environment, and collects every fault. */
export interface ConfigReader {
  text(name: string, fallback?: string): string;
  optional(name: string): string | undefined;
  integer(name: string, bounds: { min: number; max: number; fallback?: number }): number;
  choice<T extends string>(name: string, choices: readonly T[], fallback: T): T;
  /** Adds a fault of settings that do not fit together. */
  fault(text: string): void;
}

/** Names all wrong or missing settings of a process in one message. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Runs `read` over the environment and returns its result.
 * @throws ConfigError naming every faulty variable and its allowed values.
 */
export function readConfig<T>(env: NodeJS.ProcessEnv, read: (reader: ConfigReader) => T): T {
  const faults: string[] = [];
  const fail = <V>(fault: string, value: V): V => {
    faults.push(fault);
    return value;
  };
  const given = (name: string) => (env[name] === '' ? undefined : env[name]);
  const get = (name: string): string | undefined => {
    const file = SECRETS.has(name) ? given(`${name}_FILE`) : undefined;
    if (file === undefined) return given(name);
    if (given(name) !== undefined) {
      return fail(`${name} and ${name}_FILE are both set; set one of them`, '');
    }
    const secret = readSecret(file);
    return secret.ok ? secret.value : fail(`${name}_FILE: ${secret.reason}`, '');
  };
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
    fault: (text) => void faults.push(text),
  };
  const config = read(reader);
  if (faults.length > 0) throw new ConfigError(`${faults.join('; ')}.`);
  return config;
}

/** The only line of a file; the reason never repeats the content. */
function readSecret(
  file: string,
): { readonly ok: true; readonly value: string } | { readonly ok: false; readonly reason: string } {
  try {
    if (statSync(file).size > SECRET_FILE_BYTES_MAX) {
      return { ok: false, reason: `${file} is larger than ${SECRET_FILE_BYTES_MAX} bytes` };
    }
    const value = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    if (value === '') return { ok: false, reason: `${file} is empty` };
    if (/[\r\n]/.test(value)) return { ok: false, reason: `${file} has more than one line` };
    return { ok: true, value };
  } catch (error) {
    return {
      ok: false,
      reason: `${file} cannot be read (${(error as NodeJS.ErrnoException).code})`,
    };
  }
}

export interface CommonConfig {
  readonly kafkaBrokers: readonly string[];
  readonly registryUrl: string;
  /** Prefix of topics, subjects, groups and databases; empty outside tests. */
  readonly namespace: string;
  readonly logLevel: string;
  readonly metricsHost: string;
  /** Port of /metrics, /health and /ready; 0 selects a free port. */
  readonly metricsPort: number;
  /** What is offered without credentials, without payment or in clear, and why: for the start log. */
  readonly open: readonly string[];
}

/** Reads the settings that all processes share. */
export function readCommonConfig(reader: ConfigReader): CommonConfig {
  const { host: metricsHost, open } = readBind(reader, 'METRICS');
  return {
    kafkaBrokers: reader.text('KAFKA_BROKERS').split(/\s*,\s*/),
    registryUrl: reader.text('SCHEMA_REGISTRY_URL'),
    namespace: reader.text('PILLOLE_NAMESPACE', ''),
    logLevel: reader.choice('LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error'], 'info'),
    metricsHost,
    metricsPort: reader.integer('METRICS_PORT', { min: 0, max: 65_535, fallback: 0 }),
    open,
  };
}

/** An address to listen on. */
export interface Bind {
  readonly host: string;
  /** `<NAME>_HOST <host>` if other machines reach it. */
  readonly publicBy: string | undefined;
  /** Line of the start log, if other machines reach it. */
  readonly open: readonly string[];
}

/**
 * Reads `<NAME>_HOST`. The servers speak no TLS, so an address that other machines reach must be
 * confirmed by `<NAME>_PUBLIC=yes`.
 */
export function readBind(
  reader: ConfigReader,
  name: 'API' | 'INGEST' | 'STREAM' | 'DEDICATED' | 'METRICS',
): Bind {
  const host = reader.text(`${name}_HOST`, '127.0.0.1');
  const isConfirmed = reader.choice(`${name}_PUBLIC`, ['yes', 'no'], 'no') === 'yes';
  if (isLoopback(host)) return { host, publicBy: undefined, open: [] };
  const publicBy = `${name}_HOST ${host} is reachable from other machines`;
  if (!isConfirmed) {
    reader.fault(
      `${publicBy}, without TLS: use 127.0.0.1, or confirm with ${name}_PUBLIC=yes that only a ` +
        'TLS proxy or a private network reaches this port',
    );
  }
  const open = `${name.toLowerCase()} in clear on ${host} (${name}_PUBLIC=yes)`;
  return { host, publicBy, open: [open] };
}
