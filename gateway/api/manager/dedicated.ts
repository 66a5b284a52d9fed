import { dedicatedUrl } from '../../../lib/dedicated/address.ts';
import type { DedicatedStream } from '../../../lib/dedicated/stream-row.ts';
import { createDedicatedStreams, type DedicatedStreams } from '../../../lib/dedicated/streams.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { ApiConfig } from '../config.ts';

/** Dedicated sockets, and where customers find them. */
export interface Dedicated extends DedicatedStreams {
  urlOf(stream: DedicatedStream): string;
}

export function openDedicated(
  db: Database,
  { ports, max, url }: ApiConfig['dedicated'],
): Dedicated {
  return {
    ...createDedicatedStreams(db, ports, max),
    urlOf: (stream) => dedicatedUrl(url, stream),
  };
}
