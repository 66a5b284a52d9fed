/** A process that is measured. */
export type ProcessName = 'echo' | 'naive' | 'ours';

/** What is asked of one. */
export type TargetName = ProcessName | 'batch';

export interface Target {
  readonly name: TargetName;
  readonly process: ProcessName;
  readonly pillsPerRequest: number;
  readonly connections: number;
}

/** Most rows that a batch may have. */
const BATCH_PILLS = 1_000;
/** Enough that one batch is parsed while others wait for the log. */
const BATCH_CONNECTIONS = 8;

export function targetsWith(connections: number): readonly Target[] {
  return [
    { name: 'echo', process: 'echo', pillsPerRequest: 1, connections },
    { name: 'naive', process: 'naive', pillsPerRequest: 1, connections },
    { name: 'ours', process: 'ours', pillsPerRequest: 1, connections },
    {
      ...{ name: 'batch', process: 'ours' },
      ...{ pillsPerRequest: BATCH_PILLS, connections: BATCH_CONNECTIONS },
    },
  ];
}

/** Of DESIGN section 13, on one core, validation, Avro and acks=all included. */
export const GOALS = {
  ratioMin: 0.4,
  /** At half of what the closed loop reached. */
  p99MaxMicros: 10_000,
  batchPillsPerSMin: 100_000,
} as const;
