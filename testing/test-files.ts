import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { EngineName } from '../deploy/local/config.ts';

const SOURCE_FOLDERS = [
  'schemas',
  'lib',
  'domain',
  'gateway',
  'pipelines',
  'generator',
  'deploy',
  'benchmarks',
  'sdk',
];

/** A test that imports one of these starts slowly, even if it uses no engine of the run. */
const STACK = 'testing/stack.ts';
const PYTHON = 'testing/python.ts';
const KAFKA_CLUSTER = 'testing/kafka-cluster.ts';

/** The resources that a test file uses, derived from its imports. */
export interface TestFile {
  /** Path relative to the root of the repository. */
  readonly file: string;
  /** Engines of the run that the file may use. */
  readonly engines: readonly EngineName[];
  /** Whether the file uses no engine, no stack, no cluster and no Python packages. */
  readonly isQuick: boolean;
  /** Whether the file mocks a module. */
  readonly hasMocks: boolean;
}

/**
 * Finds all test files. A file uses an engine if a module that it imports, directly or indirectly,
 * calls `testEngine('NAME')`; so a new test file joins the right project without being listed.
 */
export function findTestFiles(root: string): TestFile[] {
  const modules = new Map<string, Module>();
  const read = (file: string) => {
    const known = modules.get(file) ?? readModule(root, file);
    modules.set(file, known);
    return known;
  };
  return SOURCE_FOLDERS.flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'))
      .map((name) => path.join(folder, name)),
  )
    .sort()
    .map((file) => {
      const reached = reachableFrom(file, read);
      const engines = new Set([...reached].flatMap((module) => read(module).engines));
      const isSlow = [STACK, PYTHON, KAFKA_CLUSTER].some((module) => reached.has(module));
      const isQuick = engines.size === 0 && !isSlow;
      return { file, engines: [...engines], isQuick, hasMocks: read(file).hasMocks };
    });
}

interface Module {
  readonly imports: readonly string[];
  readonly engines: readonly EngineName[];
  readonly hasMocks: boolean;
}

/** Matches `import … from './x.ts'`, `export … from` and `import('./x.ts')`, not type imports. */
const IMPORT =
  /^(?:import|export)\s+(?!type\b)(?:[^'";]*?\sfrom\s+)?'(\.[^']+)'|\bimport\(\s*'(\.[^']+)'/gm;
const ENGINE = /\btestEngine\('(\w+)'\)/g;

function readModule(root: string, file: string): Module {
  const text = readFileSync(path.join(root, file), 'utf8');
  const imports = [...text.matchAll(IMPORT)]
    .map((match) => path.join(path.dirname(file), match[1] ?? match[2] ?? ''))
    .filter((name) => /\.ts$/.test(name) && existsSync(path.join(root, name)));
  const engines = [...text.matchAll(ENGINE)].map(([, name]) => name as EngineName);
  return { imports, engines, hasMocks: /\bvi\.(?:do)?[mM]ock\(/.test(text) };
}

function reachableFrom(file: string, read: (file: string) => Module): Set<string> {
  const reached = new Set([file]);
  // Iterating a set also yields elements added during the iteration.
  for (const module of reached) for (const next of read(module).imports) reached.add(next);
  return reached;
}
