import { spawn } from 'node:child_process';
import { SetupError } from './setup-error.ts';

/** Lines of Maven's output kept for the error message. */
const OUTPUT_LINES_MAX = 200;

/** Runs Maven. @throws SetupError when Maven is missing, or with its first error line */
export async function runMaven(args: readonly string[], signal?: AbortSignal): Promise<void> {
  const lines: string[] = [];
  const code = await new Promise<number | null>((resolve, reject) => {
    const child = spawn('mvn', ['-B', '-ntp', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
    });
    const collect = (chunk: Buffer) => {
      lines.push(...chunk.toString('utf8').split('\n'));
      lines.splice(0, Math.max(0, lines.length - OUTPUT_LINES_MAX));
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new SetupError(
              'Maven is required once, to download the engines, but was not found; install it with: ' +
                'sudo apt-get install maven (macOS: brew install maven)',
            )
          : error,
      ),
    );
    child.once('close', resolve);
  });
  signal?.throwIfAborted();
  if (code === 0) return;
  const reason = lines.find((line) => line.startsWith('[ERROR]')) ?? lines.at(-1) ?? '';
  throw new SetupError(
    `Maven could not download the engines: ${reason.replace('[ERROR] ', '').trim()}`,
  );
}
