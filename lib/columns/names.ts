export type Names = ReturnType<typeof createNames>;

/**
 * Creates a table of texts that many rows share, such as symbols: a row keeps a number, and a text
 * that no row uses is forgotten.
 */
export function createNames() {
  const numbers = new Map<string, number>();
  const names: string[] = [];
  const uses: number[] = [];
  const free: number[] = [];
  return {
    /** Number of different names in use. */
    get size() {
      return numbers.size;
    },
    /** Counts one use more. @returns the number of the name */
    take(name: string): number {
      const known = numbers.get(name);
      if (known !== undefined) {
        uses[known]! += 1;
        return known;
      }
      const number = free.pop() ?? names.length;
      numbers.set(name, number);
      names[number] = name;
      uses[number] = 1;
      return number;
    },
    /** Counts one use less. @returns whether it was the last one */
    release(number: number): boolean {
      uses[number]! -= 1;
      if (uses[number]! > 0) return false;
      numbers.delete(names[number]!);
      names[number] = '';
      free.push(number);
      return true;
    },
    find: (name: string): number | undefined => numbers.get(name),
    nameOf: (number: number): string => names[number]!,
    /** The numbers in use. */
    numbers: (): Iterable<number> => numbers.values(),
  };
}
