import { formatTimestamp, type Micros, parseTimestamp } from '../../schemas/timestamp.ts';
import { fault, type ParameterFault, type Parsed } from './parameters.ts';

/** From `since` up to and not including `until`. */
export interface Window {
  readonly since: Micros;
  readonly until: Micros;
}

export interface RangeLimit {
  readonly byDefaultS: number;
  readonly maxS: number;
}

/** Reads one end of a time. @returns undefined where it is not given, or faulty */
export function readTime(
  name: string,
  text: string | undefined,
  faults: ParameterFault[],
): Micros | undefined {
  if (text === undefined) return undefined;
  const parsed = parseTimestamp(text);
  if (parsed.ok) return parsed.micros;
  faults.push(fault(name, parsed.code, parsed.detail));
  return undefined;
}

/** A time with nothing in it is a mistake: an empty answer would hide it. */
export function orderFaults({ since, until }: Window): ParameterFault[] {
  if (since < until) return [];
  const { from, to } = toldWindow({ since, until });
  const hint = `to, ${to}, must be after from, ${from}: it is not included itself.`;
  return [fault('to', 'range_backwards', hint)];
}

/** A time that is too long: what would fit, from either end. */
export function lengthFaults({ since, until }: Window, maxS: number): ParameterFault[] {
  const length = until - since;
  const longest = maxS * 1e6;
  if (length <= longest) return [];
  const hint =
    `${Math.ceil(length / 1e6)} s, limit ${maxS} s. to=${formatTimestamp(since + longest)} would fit; then ` +
    `go on from there. So would from=${formatTimestamp(until - longest)}.`;
  return [fault('to', 'range_too_large', hint)];
}

/**
 * Reads `from` and `to`. Without `to` it is now; without `from` the default before `to`.
 * @param now µs since 1970
 */
export function parseWindow(
  query: { readonly from?: string; readonly to?: string },
  limit: RangeLimit,
  now: Micros,
): Parsed<Window> {
  const faults: ParameterFault[] = [];
  const to = readTime('to', query.to, faults);
  const from = readTime('from', query.from, faults);
  if (faults.length > 0) return { ok: false, faults };
  const until = to ?? now;
  const window = { since: from ?? Math.max(0, until - limit.byDefaultS * 1e6), until };
  faults.push(...orderFaults(window), ...lengthFaults(window, limit.maxS));
  return faults.length > 0 ? { ok: false, faults } : { ok: true, value: window };
}

/** A window as answers tell it. */
export function toldWindow({ since, until }: Window): {
  readonly from: string;
  readonly to: string;
} {
  return { from: formatTimestamp(since), to: formatTimestamp(until) };
}
