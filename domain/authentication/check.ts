/** The parts of a proof, in the order in which they are checked. Contract of trials. */
export const CHECKS = [
  'headers',
  'components',
  'parameters',
  'created',
  'claims',
  'algorithm',
  'scheme',
  'content_digest',
  'key_id',
  'issuer_keys',
  'signature',
  'issuer',
  'expiry',
  'scopes',
  'nonce',
  'network',
] as const;
export type CheckName = (typeof CHECKS)[number];

/** The part of a proof that does not hold. */
export interface ProofFault {
  readonly check: CheckName;
  /** One sentence that says what to correct. It repeats nothing but the client's own request. */
  readonly detail: string;
  /**
   * Whether a client sees the fault outside of a trial too: it follows from its own request alone, or
   * from a token whose signature holds, so it reveals nothing about schemes to strangers.
   */
  readonly isShown: boolean;
}

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly fault: ProofFault };

/** A fault that the client sees, see `isShown`. */
export function malformed(check: CheckName, detail: string) {
  return { ok: false, fault: { check, detail, isShown: true } } as const;
}

/** A fault that shows only in a trial; outside, it is one answer with all others. */
export function refused(check: CheckName, detail: string) {
  return { ok: false, fault: { check, detail, isShown: false } } as const;
}
