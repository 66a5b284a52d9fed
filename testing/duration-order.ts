import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  BaseSequencer,
  type Reporter,
  type TestModule,
  type TestProject,
  type TestSpecification,
} from 'vitest/node';
import { packageRoot } from '../lib/files/package-root.ts';

/** Seconds of each long test file in a run on two cores. */
const RECORD = path.join(packageRoot, 'testing', 'durations.json');
/** Shorter files are not recorded: in any order they fill the gaps at the end of a run. */
const RECORDED_FROM_S = 4;

/**
 * Starts the longest test files first, so that no worker begins a long file when the others are
 * done. A file without a record (new, moved) counts as short. The files of a project stay together,
 * because a worker restarts when the project changes.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const seconds = existsSync(RECORD)
      ? (JSON.parse(readFileSync(RECORD, 'utf8')) as Record<string, number>)
      : {};
    const secondsOf = ({ moduleId }: TestSpecification) =>
      seconds[path.relative(packageRoot, moduleId)] ?? 0;
    const projectSeconds = new Map<TestProject, number>();
    for (const file of files) {
      const sum = projectSeconds.get(file.project) ?? 0;
      projectSeconds.set(file.project, sum + secondsOf(file));
    }
    const ofProject = ({ project }: TestSpecification) => projectSeconds.get(project) ?? 0;
    return [...files].sort(
      (a, b) =>
        ofProject(b) - ofProject(a) ||
        a.project.name.localeCompare(b.project.name) ||
        secondsOf(b) - secondsOf(a),
    );
  }
}

/**
 * Writes the record, on an otherwise idle machine:
 * `npm test -- --reporter=default --reporter=./testing/duration-order.ts`.
 */
export default class DurationRecorder implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = modules
      .map((module) => {
        const { collectDuration, duration } = module.diagnostic();
        const file = path.relative(packageRoot, module.moduleId);
        return [file, Math.round((collectDuration + duration) / 1000)] as const;
      })
      .filter(([, seconds]) => seconds >= RECORDED_FROM_S)
      .sort(([, a], [, b]) => b - a);
    writeFileSync(RECORD, `${JSON.stringify(Object.fromEntries(rows), null, 2)}\n`);
  }
}
