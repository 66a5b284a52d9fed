import { packageVersion } from '../files/package-root.ts';
import { createGauge } from '../metrics/metrics.ts';

/** Registers the metrics that all processes have. @param notReady as /ready answers */
export function registerProcessMetrics(notReady: () => string | undefined): void {
  createGauge({
    name: 'pillole_process_ready',
    help: '1 if /ready answers 200 now, 0 if not.',
    collect() {
      this.set(notReady() === undefined ? 1 : 0);
    },
  });
  createGauge({
    name: 'pillole_build_info',
    help: 'Always 1; the label is the version of the program.',
    labelNames: ['version'] as const,
  }).set({ version: packageVersion }, 1);
}
