/** The formats of answers, by the value of `format`. */
export const MEDIA_TYPES = {
  json: 'application/json',
  csv: 'text/csv',
  arrow: 'application/vnd.apache.arrow.stream',
  parquet: 'application/vnd.apache.parquet',
} as const;
export type Format = keyof typeof MEDIA_TYPES;

export const FORMATS = Object.keys(MEDIA_TYPES) as Format[];

/** ClickHouse's names of the formats that it writes itself. */
export const WRITTEN_AS = { arrow: 'ArrowStream', parquet: 'Parquet' } as const;
export type BinaryFormat = keyof typeof WRITTEN_AS;

/** Media ranges of an Accept header that are considered. */
const RANGES_MAX = 32;

interface MediaRange {
  readonly type: string;
  readonly weight: number;
}

/**
 * The format of an answer: `format`, if given, takes precedence over `Accept` (RFC 9110 section
 * 12.5.1). For each format the most specific range counts. Of equal weights, the range that stands
 * first wins, then the format that is offered first.
 * @returns undefined if no offered format is acceptable
 */
export function chooseFormat<F extends Format>(
  format: F | undefined,
  accept: string | undefined,
  offered: readonly F[],
): F | undefined {
  if (format !== undefined) return format;
  if (accept === undefined || accept.trim() === '') return offered[0];
  const ranges = accept.split(',').slice(0, RANGES_MAX).map(readRange);
  const found = offered.flatMap((name, rank) => {
    const at = mostSpecific(ranges, MEDIA_TYPES[name]);
    const weight = ranges[at]?.weight ?? 0;
    return weight > 0 ? [{ name, weight, at, rank }] : [];
  });
  found.sort((a, b) => b.weight - a.weight || a.at - b.at || a.rank - b.rank);
  return found[0]?.name;
}

/** Index of the most specific range that includes a media type; −1 if there is none. */
function mostSpecific(ranges: readonly MediaRange[], type: string): number {
  const family = `${type.split('/', 1)[0]}/*`;
  for (const wanted of [type, family, '*/*']) {
    const at = ranges.findIndex((range) => range.type === wanted);
    if (at >= 0) return at;
  }
  return -1;
}

function readRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const q = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = q === undefined ? 1 : Number(q.slice(2));
  return { type, weight: weight >= 0 && weight <= 1 ? weight : 0 };
}

/** Members of the problem `not_acceptable`. */
export function acceptable(offered: readonly Format[]) {
  const types = offered.map((name) => MEDIA_TYPES[name]);
  return { available: types, detail: `Available: ${types.join(', ')}.` };
}
