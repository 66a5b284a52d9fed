import { formatTimestamp, type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';
import { type Parsed, parameterFault } from './parameters.ts';

/** From `since` up to, but not including, `until`. */
export interface Window {
  readonly since: Micros;
  readonly until: Micros;
}

/** Parses one end of a range. @returns undefined where it is missing or faulty */
export function readTime(
  name: string,
  text: string | undefined,
  faults: ParameterFault[],
): Micros | undefined {
  if (text === undefined) return undefined;
  const parsed = parseTimestamp(text);
  if (parsed.ok) return parsed.micros;
  faults.push(parameterFault(name, parsed.code, parsed.detail));
  return undefined;
}

/** An empty range is a mistake that an empty answer would hide. */
export function orderFaults({ since, until }: Window): ParameterFault[] {
  if (since < until) return [];
  const { from, to } = windowBody({ since, until });
  const hint = `\`to\` (${to}) must be after \`from\` (${from}): the range excludes \`to\`.`;
  return [parameterFault('to', 'range_backwards', hint)];
}

/** Refuses a range that is too long, and suggests what would fit from either end. */
export function lengthFaults({ since, until }: Window, maxS: number): ParameterFault[] {
  const length = until - since;
  const longest = maxS * 1e6;
  if (length <= longest) return [];
  const hint =
    `${Math.ceil(length / 1e6)} s, limit ${maxS} s. ` +
    `to=${formatTimestamp(since + longest)} would fit, with the rest in further calls; ` +
    `so would from=${formatTimestamp(until - longest)}.`;
  return [parameterFault('to', 'range_too_large', hint)];
}

/**
 * Parses `from` and `to`. By default, `to` is now and `from` is `byDefaultS` before `to`.
 * @param now µs since 1970
 */
export function parseWindow(
  query: { readonly from?: string; readonly to?: string },
  limit: { readonly byDefaultS: number; readonly maxS: number },
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

/** A window as in answers. */
export function windowBody({ since, until }: Window): {
  readonly from: string;
  readonly to: string;
} {
  return { from: formatTimestamp(since), to: formatTimestamp(until) };
}
