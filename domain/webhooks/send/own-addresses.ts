import os from 'node:os';
import type { ConfigReader } from '../../../lib/config/config.ts';
import { isLoopback } from '../../../lib/http/loopback.ts';

/** Where the platform itself listens: nothing is posted there. */
export interface OwnAddresses {
  /** Ports of processes and engines, refused on this machine. */
  readonly ports: ReadonlySet<number>;
  /** Names and addresses of services and engines on other machines, refused at any port. */
  readonly hosts: ReadonlySet<string>;
  /** Whether customers reach a service from another machine. */
  readonly isPublic: boolean;
}

/** Addresses at which customers find the services. */
const PUBLIC = ['PUBLIC_URL', 'INGEST_URL', 'STREAM_URL', 'DEDICATED_URL'] as const;
/** Where the processes listen for customers. */
const BINDS = ['API_HOST', 'INGEST_HOST', 'STREAM_HOST', 'DEDICATED_HOST'] as const;
/** Addresses of engines, the mail server and the egress proxy. */
const INTERNAL = [
  ...['SCHEMA_REGISTRY_URL', 'CLICKHOUSE_URL', 'DATABASE_URL', 'SMTP_URL'],
  'WEBHOOK_EGRESS_PROXY',
] as const;
/** Ports of the processes. */
const PORTS = [
  ...['API_PORT', 'INGEST_PORT', 'STREAM_PORT', 'DEDICATED_PORTS', 'METRICS_PORT'],
  'WEBHOOK_REFUSED_PORTS',
] as const;
type UrlSetting = (typeof PUBLIC)[number] | (typeof INTERNAL)[number];

const PORT_OF_SCHEME: Readonly<Record<string, number>> = {
  ...{ 'http:': 80, 'https:': 443, 'ws:': 80, 'wss:': 443, 'smtp:': 25, 'smtps:': 465 },
  ...{ 'postgres:': 5432, 'postgresql:': 5432, 'kafka:': 9092 },
};

/**
 * Reads where the platform listens from the settings that name its addresses, and from
 * WEBHOOK_REFUSED_PORTS: ports or ranges separated by commas, e.g. 9093,9101-9108.
 */
export function readOwnAddresses(reader: ConfigReader): OwnAddresses {
  const urlsOf = (names: readonly UrlSetting[]) => names.flatMap((name) => reader.get(name) ?? []);
  const brokers = reader.get('KAFKA_BROKERS')?.split(/\s*,\s*/) ?? [];
  const publicUrls = urlsOf(PUBLIC).map(parse);
  const urls = [
    ...publicUrls,
    ...[...urlsOf(INTERNAL), ...brokers.map((broker) => `kafka://${broker}`)].map(parse),
  ].filter((url) => url !== undefined);
  const isHere = (url: URL | undefined) => url !== undefined && isLoopback(url.hostname);
  return {
    ports: new Set([...urls.map(portOf), ...readPorts(reader)]),
    hosts: new Set(urls.filter((url) => !isHere(url)).map(({ hostname }) => hostname)),
    isPublic: !publicUrls.every(isHere) || isLaidOpen(reader),
  };
}

/** Whether a process listens for other machines, or a proxy is in front, whatever the URLs say. */
function isLaidOpen(reader: ConfigReader): boolean {
  const hosts = BINDS.map((name) => reader.get(name));
  return hosts.some((host) => !isLoopback(host)) || /[^\s,]/.test(reader.get('TRUSTED_PROXIES'));
}

/** Whether an address is one of a network interface of this machine, e.g. the public one. */
export function isOwnInterface(address: string): boolean {
  return Object.values(os.networkInterfaces()).some((of) =>
    of?.some((one) => !one.internal && one.address === address),
  );
}

/** @returns undefined for text that is no URL; templates of dedicated sockets are filled in */
function parse(text: string): URL | undefined {
  const filled = text.replace('{port}', '8301').replace('{name}', 'ded');
  return URL.canParse(filled) ? new URL(filled) : undefined;
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (PORT_OF_SCHEME[protocol] ?? 0) : Number(port);
}

function readPorts(reader: ConfigReader): number[] {
  return PORTS.flatMap((name) => {
    const items = String(reader.get(name)).split(/\s*,\s*/);
    return items.filter(Boolean).flatMap((item) => {
      const [, from, to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(item) ?? [];
      const isRange = Number(from) <= Number(to) && Number(to) <= 65_535;
      if (isRange) {
        return Array.from({ length: Number(to) - Number(from) + 1 }, (_, n) => Number(from) + n);
      }
      // Other settings are checked by the process that they belong to.
      if (name === 'WEBHOOK_REFUSED_PORTS') {
        reader.fault(`${name} must be ports or ranges such as 9093,9101-9108`);
      }
      return [];
    });
  });
}
