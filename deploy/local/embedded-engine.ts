import type { startChild } from './local-child.ts';
import type { Passwords } from './passwords.ts';
import type { PortAllocator } from './port-allocator.ts';
import type { StackLayout } from './stack-layout.ts';

/** Preferred ports; 0 means any free one. */
export interface EnginePorts {
  readonly kafka: number;
  readonly controller: number;
  readonly registry: number;
  readonly clickhouse: number;
  readonly postgres: number;
}

export interface EngineDeps {
  readonly layout: StackLayout;
  readonly ports: PortAllocator;
  readonly preferredPorts: EnginePorts;
  readonly passwords: Passwords;
  readonly javaHome: string | undefined;
  readonly namespace: string;
  readonly report: (line: string) => void;
  /** The data is deleted after the run, so it need not survive a crash of the machine. */
  readonly isTemporary: boolean;
  /** Aborted to give up the start. */
  readonly signal?: AbortSignal | undefined;
}

/** An engine that is downloaded and configured, and can be started again after a crash. */
export interface EmbeddedEngine {
  /** Holds user and password. */
  readonly address: string;
  /** The engine's process; called before each start. */
  readonly child: () => Pick<Parameters<typeof startChild>[0], 'command' | 'args' | 'env' | 'cwd'> &
    Partial<
      Pick<Parameters<typeof startChild>[0], 'stopSignal' | 'stopTimeoutMs' | 'bringsPdeathsig'>
    >;
  /** True when the engine serves; an error counts as "not yet". */
  readonly isReady: () => Promise<boolean>;
  readonly readyTimeoutMs: number;
}
