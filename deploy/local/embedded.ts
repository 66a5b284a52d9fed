/** What the four embedded engines have in common. */
import type { Child } from './child.ts';
import type { Place } from './place.ts';
import type { PortBook } from './ports.ts';

export type EngineName = 'kafka' | 'registry' | 'clickhouse' | 'postgres';

/** Ports asked for; 0 means any free one. */
export type EnginePorts = {
  kafka: number;
  controller: number;
  registry: number;
  clickhouse: number;
  postgres: number;
};

export type EngineSetting = {
  place: Place;
  ports: PortBook;
  wantedPorts: EnginePorts;
  say: (line: string) => void;
  /** Aborted when the stack is to end while it still starts. */
  signal?: AbortSignal | undefined;
};

/** An engine that is fetched and configured: it can be started, and again after it died. */
export type EmbeddedEngine = {
  address: string;
  start: () => Promise<Child>;
  /** Resolves when the engine serves; rejects when it ended or is too late. */
  ready: (child: Child) => Promise<void>;
};
