/**
 * Rows of a table as lines of text: the first column (or the first few) to the left, figures to
 * the right, the last as it is. The first row is the head.
 */
export function alignedLines(rows: readonly (readonly string[])[], names = 1): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => {
        if (column === row.length - 1) return cell;
        return column < names ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
      })
      .join('  ')
      .trimEnd(),
  );
}
