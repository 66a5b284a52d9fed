/**
 * Whether an Accept header asks for CSV rather than JSON (RFC 9110, 12.5.1): named itself, and
 * not behind JSON or what includes it. Of equal weight the first one counts.
 */
export function prefersCsv(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  let csv = 0;
  let json = 0;
  for (const range of accept.split(',').slice(0, RANGES_MAX)) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const weight = weightOf(parameters);
    // The later one of the two must be above the earlier, not equal to it.
    if (type === 'text/csv' && weight > json) csv = Math.max(csv, weight);
    else if (JSON_RANGES.has(type) && weight > csv) json = Math.max(json, weight);
  }
  return csv > json;
}

/** Media ranges that are looked at. */
const RANGES_MAX = 32;
const JSON_RANGES = new Set(['application/json', 'application/*', '*/*']);

function weightOf(parameters: readonly string[]): number {
  const q = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = q === undefined ? 1 : Number(q.slice(2));
  return weight >= 0 && weight <= 1 ? weight : 0;
}
