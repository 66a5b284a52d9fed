import { formatTimestamp, type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import type { ParameterFault, Parsed } from '../parameters.ts';

/** From `since` up to and not including `until`. */
export interface Window {
  readonly since: Micros;
  readonly until: Micros;
}

export interface RangeLimit {
  readonly byDefaultS: number;
  readonly maxS: number;
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
  const read = (name: 'from' | 'to') => {
    const text = query[name];
    if (text === undefined) return undefined;
    const parsed = parseTimestamp(text);
    if (parsed.ok) return parsed.micros;
    faults.push({ parameter: name, code: parsed.code, detail: parsed.detail });
    return undefined;
  };
  const to = read('to');
  const from = read('from');
  if (faults.length > 0) return { ok: false, faults };
  const until = to ?? now;
  const since = from ?? Math.max(0, until - limit.byDefaultS * 1e6);
  if (since >= until) {
    const detail = `It must be before to, which is ${formatTimestamp(until)}.`;
    return { ok: false, faults: [{ parameter: 'from', code: 'range_empty', detail }] };
  }
  if (until - since > limit.maxS * 1e6) {
    const detail =
      `${Math.ceil((until - since) / 1e6)} s, limit ${limit.maxS} s. ` +
      `With this to, from may be ${formatTimestamp(until - limit.maxS * 1e6)} or later.`;
    return { ok: false, faults: [{ parameter: 'from', code: 'range_too_long', detail }] };
  }
  return { ok: true, value: { since, until } };
}

/** A window as answers tell it. */
export function toldWindow({ since, until }: Window): {
  readonly from: string;
  readonly to: string;
} {
  return { from: formatTimestamp(since), to: formatTimestamp(until) };
}
