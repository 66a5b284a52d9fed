/** What the platform sends with a range of history, and with an export. */
export interface Receipt {
  readonly algorithm: string;
  readonly epoch: string;
  readonly count: number;
  /** The lowest and the highest cursor, by epoch, partition and offset; null: no pill. */
  readonly first: string | null;
  readonly last: string | null;
  /** Sum of the SHA-256 of the pills modulo 2^256, 64 hex digits. */
  readonly digest: string;
  /** Of a page of history: whether the receipt covers the whole range. */
  readonly complete?: boolean;
}
