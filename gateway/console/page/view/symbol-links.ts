/** Where the row of a symbol leads. */
export interface SymbolLinks {
  addressOf(symbol: string): string;
  open(symbol: string): void;
}
