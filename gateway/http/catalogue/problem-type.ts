/** The action that a client may take after a problem. The values are contract, as the codes are. */
export type Retry =
  /** The same request will fail again. */
  | 'never'
  /** Nothing happened; send the request again after `retry_after_s`. */
  | 'after'
  /** The pill may be stored; sending it again with the same id is safe. */
  | 'same_id'
  /** The change may have been made; check before sending the request again. */
  | 'check';

/** One kind of problem (RFC 9457), as the answers and its reference page describe it. */
export interface ProblemType {
  readonly status: number;
  readonly title: string;
  readonly meaning: string;
  readonly remedy: string;
  readonly retry: Retry;
  /** Absolute `type` where a registry defines one; by default the page of the problem here. */
  readonly type?: string;
  /** `WWW-Authenticate`, which every 401 must have (RFC 9110 section 15.5.2). */
  readonly challenge?: string;
}

/**
 * A part of the catalogue, by code. By default, a client repeats the request after 408, 429 and
 * 503, and never after another status.
 */
export function problemTypes<Code extends string>(
  types: Readonly<Record<Code, Omit<ProblemType, 'retry'> & { readonly retry?: Retry }>>,
): Readonly<Record<Code, ProblemType>> {
  const complete = Object.entries<(typeof types)[Code]>(types).map(([code, type]) => [
    code,
    { retry: [408, 429, 503].includes(type.status) ? 'after' : 'never', ...type },
  ]);
  return Object.fromEntries(complete);
}
