import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { LongestFirst } from './testing/duration-order.ts';
import { findTestFiles, type TestFile } from './testing/test-files.ts';

const files = findTestFiles(import.meta.dirname);

function project(
  name: string,
  has: (file: TestFile) => boolean,
  test: TestProjectInlineConfiguration['test'] = {},
): TestProjectInlineConfiguration {
  const include = files.filter(has).map(({ file }) => file);
  return { extends: true, test: { name, include, ...test } };
}

export default defineConfig({
  test: {
    projects: [
      project('quick', (file) => file.isQuick && !file.hasMocks),
      // A module that another file has loaded into the worker before would not be mocked.
      project('mocks', (file) => file.isQuick && file.hasMocks, { isolate: true }),
      project('engines', (file) => !file.isQuick, { globalSetup: ['testing/test-engines.ts'] }),
    ],
    // A process of its own for each file took a third of all CPU time, to load the same modules.
    isolate: false,
    // Most files wait rather than compute. With more workers than four on two cores, processes that
    // tests start miss their time-outs.
    maxWorkers: 4,
    setupFiles: ['testing/property-seed.ts'],
    sequence: { sequencer: LongestFirst },
    // Generous, since two runs may share the machine; each test's own bounds are in its assertions.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    reporters: process.env.CI ? ['default', './testing/count-reporter.ts'] : ['default'],
  },
});
