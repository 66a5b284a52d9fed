import { isLoopback } from '../http/loopback.ts';
import type { ConfigReader } from './config.ts';
import { readEngineUrl } from './engine-url.ts';
import { type KafkaCluster, readKafkaCluster } from './kafka-cluster.ts';

/** The log, and the registry with the schemas of its records. */
export interface LogConfig {
  readonly kafka: KafkaCluster;
  readonly registryUrl: string;
  /** Prefix of topics, subjects, groups and databases; empty outside tests. */
  readonly namespace: string;
}

/** Reads where the log is. */
export function readLogConfig(reader: ConfigReader): LogConfig {
  return {
    kafka: readKafkaCluster(reader),
    registryUrl: readEngineUrl(reader, 'SCHEMA_REGISTRY_URL'),
    namespace: reader.get('PILLOLE_NAMESPACE'),
  };
}

/** What every process serves and logs about itself. */
export interface OpsConfig {
  readonly logLevel: string;
  readonly metricsHost: string;
  /** Port of /metrics, /health and /ready; 0 selects a free port. */
  readonly metricsPort: number;
  /** What is offered without credentials, without payment or in clear, and why: for the start log. */
  readonly open: readonly string[];
}

export function readOpsConfig(reader: ConfigReader): OpsConfig {
  const { host: metricsHost, open } = readBind(reader, 'METRICS');
  return {
    logLevel: reader.get('LOG_LEVEL'),
    metricsHost,
    metricsPort: reader.get('METRICS_PORT'),
    open,
  };
}

export interface CommonConfig extends LogConfig, OpsConfig {}

/** Reads the settings that the processes on the log share. */
export function readCommonConfig(reader: ConfigReader): CommonConfig {
  return { ...readLogConfig(reader), ...readOpsConfig(reader) };
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
  const host = reader.get(`${name}_HOST`);
  const isConfirmed = reader.get(`${name}_PUBLIC`) === 'yes';
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
