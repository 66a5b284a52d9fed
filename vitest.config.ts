import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{schemas,lib,gateway,pipelines,generator,deploy,benchmarks,sdk}/**/*.test.ts'],
    globalSetup: ['deploy/local/test-engines.ts'],
    testTimeout: 60_000,
    hookTimeout: 90_000,
    // Two cores: more files at a time only wait for each other, and for the engines.
    maxWorkers: 2,
    reporters: process.env.CI ? ['default', './lib/testing/count-reporter.ts'] : ['default'],
  },
});
