import { randomBytes } from 'node:crypto';
import type { RefusalCount, RefusalReport, RefusalSample } from '../../schemas/avro.ts';
import type { Fault } from '../../schemas/fault.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { ProblemCode } from '../http/problem-catalogue.ts';

/** Bounds of what is kept until the log has acknowledged it. */
export const REFUSAL_LIMITS = {
  /** Span of one count, µs. */
  spanMicros: 300_000_000,
  /** Counts by span, source and reason; further reasons are counted together, as `other`. */
  countsMax: 10_000,
  /** Bodies of one source and reason in a span, and waiting ones; further bodies are only counted. */
  samplesOfReasonMax: 10,
  samplesMax: 100,
  bodyBytesMax: 2 * 1024,
  reasonCharsMax: 500,
  /** Counts in one report; the others follow in the next. */
  reportCountsMax: 2_000,
} as const;

/** An answer without a write to the log. */
export interface Refusal {
  /** The generator; empty if unknown. */
  readonly source: string;
  /** `replayed`: a repeat, answered ok. */
  readonly code: ProblemCode | 'replayed';
  readonly at: Micros;
  /** 1 by default. */
  readonly pills?: number;
  readonly faults?: readonly Fault[];
  /** Why, if there are no faults. */
  readonly detail?: string;
  /** Makes the refused body or row; called only if it becomes a sample. */
  readonly body?: () => Buffer;
}

interface Entry extends RefusalCount {
  count: number;
  /** Of `count`, what the log has acknowledged. */
  reported: number;
  samples: number;
}

export type Refusals = ReturnType<typeof createRefusals>;

/**
 * Creates the counts and samples of one run of the process. Counts are totals of the run: a report
 * that is lost, or stored twice, changes none.
 */
export function createRefusals(reporter = randomBytes(8).toString('hex')) {
  const entries = new Map<string, Entry>();
  let samples: RefusalSample[] = [];
  let sampled = 0;

  const entryOf = (since: Micros, source: string, code: string, fault: string): Entry => {
    const key = `${since} ${source} ${code} ${fault}`;
    const known = entries.get(key);
    if (known !== undefined) return known;
    if (entries.size >= REFUSAL_LIMITS.countsMax && code !== 'other') {
      return entryOf(since, '', 'other', '');
    }
    const entry = { since, source, code, fault, count: 0, reported: 0, samples: 0 };
    entries.set(key, entry);
    return entry;
  };
  const sample = (entry: Entry, refusal: Refusal) => {
    if (refusal.body === undefined || entry.code === 'other') return;
    if (entry.samples >= REFUSAL_LIMITS.samplesOfReasonMax) return;
    if (samples.length >= REFUSAL_LIMITS.samplesMax) return;
    entry.samples += 1;
    sampled += 1;
    samples.push(sampleOf(sampled, entry, refusal, refusal.body()));
  };

  return {
    note(refusal: Refusal): void {
      const { source, code, at, faults, pills = 1 } = refusal;
      const since = at - (at % REFUSAL_LIMITS.spanMicros);
      const entry = entryOf(since, source, code, faults?.[0]?.code ?? '');
      entry.count += pills;
      sample(entry, refusal);
    },
    /** What is not acknowledged yet; undefined if there is nothing. */
    report(): RefusalReport | undefined {
      const counts: RefusalCount[] = [];
      for (const { since, source, code, fault, count, reported } of entries.values()) {
        if (count > reported) counts.push({ since, source, code, fault, count });
        if (counts.length === REFUSAL_LIMITS.reportCountsMax) break;
      }
      return counts.length === 0 && samples.length === 0
        ? undefined
        : { reporter, counts, samples: [...samples] };
    },
    /** The log has the report; spans that are over at `now` are forgotten. */
    acknowledge(report: RefusalReport, now: Micros): void {
      for (const { since, source, code, fault, count } of report.counts) {
        const entry = entryOf(since, source, code, fault);
        entry.reported = Math.max(entry.reported, count);
      }
      const last = report.samples.at(-1)?.number ?? 0;
      samples = samples.filter(({ number }) => number > last);
      // A request that began in a span may be refused shortly after its end.
      const before = now - 2 * REFUSAL_LIMITS.spanMicros;
      for (const [key, { since, count, reported }] of entries) {
        if (since < before && reported === count) entries.delete(key);
      }
    },
  };
}

function sampleOf(
  number: number,
  { source, code, fault }: Entry,
  { at, faults = [], detail = '' }: Refusal,
  bytes: Buffer,
): RefusalSample {
  const words = faults.map((one) => `${one.pointer}: ${one.detail}`).join(' ') || detail;
  return {
    ...{ number, at, source, code, fault },
    reason: words.slice(0, REFUSAL_LIMITS.reasonCharsMax).toWellFormed(),
    // A copy: a slice would keep the whole body in memory.
    body: Buffer.from(bytes.subarray(0, REFUSAL_LIMITS.bodyBytesMax)),
    body_bytes: bytes.length,
  };
}

/** The refusals of this process. */
export const refusals = createRefusals();
