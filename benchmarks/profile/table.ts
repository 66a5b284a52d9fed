import { alignedLines } from '../aligned-lines.ts';
import { AREAS, type ProfileSummary } from './areas.ts';

/** A profile of a process, with how many pills went through it meanwhile. */
export interface PillProfile extends ProfileSummary {
  readonly name: string;
  readonly pills: number;
  /** CPU of the whole process meanwhile, by the kernel; null where it cannot be read. */
  readonly cpuMicros: number | null;
}

/**
 * CPU µs a pill of so much sampled time. The kernel's figure is shared out by the samples: V8
 * counts a thread that waits for a core as busy, and does not see the threads beside it.
 */
export function microsPerPill(
  sampled: number,
  { busyMicros, cpuMicros, pills }: Pick<PillProfile, 'busyMicros' | 'cpuMicros' | 'pills'>,
): number {
  const cpuPerSampled = cpuMicros === null ? 1 : cpuMicros / busyMicros;
  return (sampled * cpuPerSampled) / pills;
}

/** CPU µs a pill by area, a column for each process. */
export function profileLines(profiles: readonly PillProfile[]): string[] {
  const cells = (name: string, sampled: (one: PillProfile) => number | undefined) => [
    name,
    ...profiles.map((one) => {
      const micros = sampled(one);
      return micros === undefined ? '' : microsPerPill(micros, one).toFixed(1);
    }),
    '',
  ];
  const areas = AREAS.filter((area) => profiles.some((one) => area in one.areas));
  return alignedLines([
    ['CPU µs a pill', ...profiles.map(({ name }) => name), ''],
    ...areas.map((area) => cells(area, (one) => one.areas[area])),
    cells('all', (one) => one.busyMicros),
  ]);
}

/** The functions with the most time of their own: µs a pill, and share of the process. */
export function functionLines(profile: PillProfile, most: number): string[] {
  return profile.functions.slice(0, most).map(({ name, micros }) => {
    const share = (100 * micros) / profile.busyMicros;
    return [
      microsPerPill(micros, profile).toFixed(1).padStart(6),
      `${share.toFixed(0).padStart(3)} %`,
      name,
    ].join('  ');
  });
}
