import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type Copy, DockerfileParser, type Instruction } from 'dockerfile-ast';
import { packageRoot } from '../../lib/files/package-root.ts';

export const DOCKERFILE = path.join(packageRoot, 'deploy/image/Dockerfile');

/** One COPY of the last stage. */
export interface CopyStep {
  /** Stage that is copied from. */
  readonly from: string;
  readonly source: string;
  readonly target: string;
}

/** What the last stage says, from which a process is started. */
export interface ImageRecipe {
  readonly copies: readonly CopyStep[];
  /** Commands that the build runs inside the image, in exec form. */
  readonly runs: readonly (readonly string[])[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
  /** Tags of all base images. */
  readonly bases: readonly string[];
}

/** Reads the Dockerfile. @throws Error for an instruction that is not in exec form, or unknown */
export function readRecipe(file: string = DOCKERFILE): ImageRecipe {
  const dockerfile = DockerfileParser.parse(readFileSync(file, 'utf8'));
  const bases = dockerfile.getFROMs().map((from) => from.getImage() ?? '');
  const first = dockerfile.getFROMs().at(-1)?.getRange()?.start.line ?? 0;
  const last = dockerfile
    .getInstructions()
    .filter((one) => (one.getRange()?.start.line ?? 0) > first);
  const named = (keyword: string) => last.filter((one) => one.getKeyword() === keyword);
  const only = (keyword: string): Instruction => {
    const found = named(keyword).at(-1);
    if (found === undefined) throw new Error(`The last stage of ${file} has no ${keyword}.`);
    return found;
  };
  return {
    bases,
    copies: named('COPY').map((one) => copyStep(one as Copy)),
    runs: named('RUN').map(execForm),
    env: Object.fromEntries(named('ENV').flatMap(variables)),
    workdir: textOf(only('WORKDIR')),
    user: textOf(only('USER')),
    entrypoint: execForm(only('ENTRYPOINT')),
    command: execForm(only('CMD')),
    healthCheck: healthCheckOf(only('HEALTHCHECK')),
  };
}

function copyStep(copy: Copy): CopyStep {
  const from = copy
    .getFlags()
    .find((flag) => flag.getName() === 'from')
    ?.getValue();
  const [source, target] = copy.getArguments().map((one) => one.getValue());
  if (!from || source === undefined || target === undefined) {
    throw new Error(`The last stage may only copy from another one, not: ${copy.toString()}`);
  }
  return { from, source, target };
}

/** The arguments of an instruction in exec form, which starts no shell. */
function execForm(instruction: Instruction): string[] {
  // Not the parser's own strings, from which it drops the spaces.
  const json = instruction.getRawArgumentsContent() ?? '';
  if (!json.startsWith('[')) {
    throw new Error(`${instruction.getKeyword()} must be in exec form: ["command", "argument"]`);
  }
  return JSON.parse(json) as string[];
}

/** HEALTHCHECK [flags] CMD ["command", …] */
function healthCheckOf(instruction: Instruction): string[] {
  const [, json] = /\bCMD\s+(\[.*\])\s*$/s.exec(instruction.getRawArgumentsContent() ?? '') ?? [];
  if (json === undefined) throw new Error('HEALTHCHECK must be CMD in exec form.');
  return JSON.parse(json) as string[];
}

function variables(instruction: Instruction): [string, string][] {
  return instruction.getArguments().map((one) => {
    const [name = '', ...value] = one.getValue().split('=');
    return [name, value.join('=')];
  });
}

const textOf = (instruction: Instruction): string => instruction.getArgumentsContent() ?? '';
