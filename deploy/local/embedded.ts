import type { Child } from './child.ts';
import type { Place } from './place.ts';
import type { PortBook } from './ports.ts';

/** Ports asked for; 0 means any free one. */
export interface EnginePorts {
  readonly kafka: number;
  readonly controller: number;
  readonly registry: number;
  readonly clickhouse: number;
  readonly postgres: number;
}

/** What each embedded engine is given. */
export interface EngineSetting {
  readonly place: Place;
  readonly ports: PortBook;
  readonly wantedPorts: EnginePorts;
  readonly javaHome: string | undefined;
  readonly say: (line: string) => void;
  /** Aborted when the stack is to end while it still starts. */
  readonly signal?: AbortSignal | undefined;
}

/** An engine that is fetched and configured: it can be started, and again after it died. */
export interface EmbeddedEngine {
  readonly address: string;
  readonly start: () => Promise<Child>;
  /** Resolves when the engine serves; rejects when it ended or is too late. */
  readonly ready: (child: Child) => Promise<void>;
}
