/** Bytes of a file, both ends inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads a Range header (RFC 9110 section 14.2). Several ranges, and units other than bytes, are
 * ignored, as the RFC allows.
 * @returns undefined: the whole file
 */
export function readRange(
  header: string | undefined,
  length: number,
): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '');
  if (match === null || (match[1] === '' && match[2] === '')) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '') {
    const suffix = Math.min(Number(last), length);
    return suffix === 0 ? 'unsatisfiable' : { start: length - suffix, end: length - 1 };
  }
  const start = Number(first);
  const end = last === '' ? length - 1 : Math.min(Number(last), length - 1);
  if (last !== '' && Number(last) < start) return undefined; // not valid, so ignored
  return start >= length ? 'unsatisfiable' : { start, end };
}
