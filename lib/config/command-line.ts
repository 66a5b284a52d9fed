import { ConfigError } from './config.ts';
import { describeSettings, printSettings } from './describe.ts';

const FLAGS = `
  --help          print this
  --print-config  print the settings in force and where each comes from; secrets are hidden
`;

/**
 * Answers `--help` and `--print-config` of a process and exits; returns if neither is given.
 * `--print-config` exits 2 if the settings are faulty, and says why on stderr.
 */
export function answerCommandLine(name: string, read: (env: NodeJS.ProcessEnv) => unknown): void {
  const flags = process.argv.slice(2);
  if (flags.includes('--help')) {
    process.stdout.write(`${name}\n${FLAGS}\n${describeSettings(name)}`);
    process.exit(0);
  }
  if (flags.includes('--print-config')) printConfig(name, read);
}

/** Prints the settings in force, then every fault, and exits. */
export function printConfig(name: string, read: (env: NodeJS.ProcessEnv) => unknown): never {
  process.stdout.write(printSettings(name, process.env));
  try {
    read(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${name} cannot start: ${error.message}\n`);
    process.exit(2);
  }
  process.exit(0);
}
