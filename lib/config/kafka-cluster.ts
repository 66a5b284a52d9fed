import { isLoopback } from '../http/loopback.ts';
import type { ConfigReader } from './config.ts';
import { readPemFile } from './engine-url.ts';

/** Where a cluster is, and how connections to it are secured. */
export interface KafkaCluster {
  readonly brokers: readonly string[];
  /** Texts of PEM; without `ca` the public authorities count. undefined: no TLS. */
  readonly tls?: {
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
  };
  /** undefined: the brokers ask for no password. */
  readonly sasl?: {
    readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
    readonly username: string;
    readonly password: string;
  };
}

type Security = Pick<KafkaCluster, 'tls' | 'sasl'>;

/** Reads the addresses of the brokers, and how connections to them are secured. */
export function readKafkaCluster(reader: ConfigReader): KafkaCluster {
  const brokers = reader.need('KAFKA_BROKERS').split(/\s*,\s*/);
  return { brokers, ...readKafkaSecurity(reader, brokers) };
}

/** Reads TLS and SASL of connections to brokers. */
export function readKafkaSecurity(reader: ConfigReader, brokers: readonly string[]): Security {
  const tls = readTls(reader);
  const sasl = readSasl(reader);
  const isHere = brokers.every((one) => isLoopback(one.replace(/:\d+$/, '')));
  if (sasl?.mechanism === 'plain' && tls === undefined && !isHere) {
    reader.fault(
      'KAFKA_SASL_MECHANISM=plain would send the password in clear to other machines: set ' +
        'KAFKA_TLS=yes, or use scram-sha-512',
    );
  }
  return { ...(tls === undefined ? {} : { tls }), ...(sasl === undefined ? {} : { sasl }) };
}

function readTls(reader: ConfigReader): KafkaCluster['tls'] {
  const files = {
    ca: 'KAFKA_CA_FILE',
    cert: 'KAFKA_CERTIFICATE_FILE',
    key: 'KAFKA_KEY_FILE',
  } as const;
  const set = Object.values(files).filter((name) => reader.get(name) !== undefined);
  if (reader.get('KAFKA_TLS') === 'no') {
    if (set.length > 0) reader.fault(`${set.join(', ')} without TLS: set KAFKA_TLS=yes too`);
    return undefined;
  }
  const isHalf = set.includes(files.cert) !== set.includes(files.key);
  if (isHalf) reader.fault(`${files.cert} and ${files.key} belong together: set both or none`);
  const pems = Object.entries(files).flatMap(([member, name]) => {
    const file = reader.get(name);
    return file === undefined ? [] : [[member, readPemFile(reader, name, file)] as const];
  });
  return Object.fromEntries(pems);
}

function readSasl(reader: ConfigReader): KafkaCluster['sasl'] {
  const mechanism = reader.get('KAFKA_SASL_MECHANISM');
  const [username, password] = [reader.get('KAFKA_USERNAME'), reader.get('KAFKA_PASSWORD')];
  if (mechanism === 'none') {
    if (username !== undefined || password !== undefined) {
      reader.fault('KAFKA_USERNAME or KAFKA_PASSWORD without a KAFKA_SASL_MECHANISM: set it too');
    }
    return undefined;
  }
  if (username === undefined || password === undefined) {
    reader.fault(`KAFKA_SASL_MECHANISM=${mechanism} needs KAFKA_USERNAME and KAFKA_PASSWORD`);
  }
  return { mechanism, username: username ?? '', password: password ?? '' };
}
