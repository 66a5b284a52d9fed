/** Joins the slices of an export, which ClickHouse has written, to one file. */
export interface Parts {
  /** @returns the bytes to append for a slice */
  add(slice: Buffer): Buffer;
  /** @returns the bytes at the end of the file */
  end(): Buffer;
}
