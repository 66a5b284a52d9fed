import { createGauge } from './metrics.ts';

/** The engines that processes use. */
export type Dependency = 'kafka' | 'postgres' | 'clickhouse';

const answered = new Map<Dependency, boolean>();

createGauge({
  name: 'pillole_dependency_up',
  help: '1 if the last request of this process to the engine was answered, 0 if it was not.',
  labelNames: ['dependency'] as const,
  collect() {
    for (const [dependency, isUp] of answered) this.set({ dependency }, Number(isUp));
  },
});

/** Notes whether an engine has answered a request, even by refusing it. */
export function noteDependency(dependency: Dependency, isUp: boolean): void {
  answered.set(dependency, isUp);
}
