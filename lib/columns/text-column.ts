export type TextColumn = ReturnType<typeof createTextColumn>;

/**
 * Creates a column of short texts, in one array outside V8's heap: a garbage collection neither
 * copies nor follows them. A text that is longer, or has a character beyond Latin-1, is kept as an
 * ordinary string.
 * @param width characters of a row
 */
export function createTextColumn(rows: number, width: number) {
  const bytes = Buffer.allocUnsafeSlow(rows * width);
  const lengths = new Uint16Array(rows);
  const others = new Map<number, string>();
  return {
    set(row: number, text: string): void {
      if (others.size > 0) others.delete(row);
      const start = row * width;
      const { length } = text;
      let isPlain = length <= width;
      // A call into native code would cost more than this loop.
      for (let at = 0; isPlain && at < length; at += 1) {
        const code = text.charCodeAt(at);
        if (code > 0xff) isPlain = false;
        else bytes[start + at] = code;
      }
      if (isPlain) lengths[row] = length + 1;
      else {
        lengths[row] = 0;
        others.set(row, text);
      }
    },
    get(row: number): string {
      const length = lengths[row]!;
      if (length === 0) return others.get(row) ?? '';
      return bytes.toString('latin1', row * width, row * width + length - 1);
    },
    /** Whether a row holds this text. */
    has(row: number, text: string): boolean {
      const length = lengths[row]!;
      if (length === 0) return others.get(row) === text;
      if (text.length !== length - 1) return false;
      const start = row * width;
      for (let at = 0; at < text.length; at += 1) {
        if (bytes[start + at] !== text.charCodeAt(at)) return false;
      }
      return true;
    },
    clear(row: number): void {
      lengths[row] = 0;
      others.delete(row);
    },
  };
}
