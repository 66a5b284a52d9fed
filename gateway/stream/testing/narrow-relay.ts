import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

/**
 * A relay in front of a stream process whose kernel buffers little, for readers that stop reading.
 * The queue of a reader that is merely paused fills after some 30 MiB; on a busy machine that takes
 * longer than the 24 s after which the server ends a socket that answers no ping.
 */
export interface NarrowRelay {
  /** The address of the stream, through the relay. */
  readonly url: string;
  /** Stops reading from the stream, for all connections. */
  pause(): void;
  resume(): void;
  close(): void;
}

export async function openNarrowRelay(streamUrl: string): Promise<NarrowRelay> {
  const script = path.join(import.meta.dirname, 'narrow-relay.py');
  const { port } = new URL(streamUrl);
  const relay = spawn('python3', [script, port], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [own] = (await once(relay.stdout, 'data')) as [Buffer];
  return {
    url: streamUrl.replace(/:\d+/, `:${String(own).trim()}`),
    pause: () => void relay.kill('SIGUSR1'),
    resume: () => void relay.kill('SIGUSR2'),
    close: () => void relay.kill(),
  };
}
