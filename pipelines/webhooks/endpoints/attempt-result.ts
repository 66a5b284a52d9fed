/** The result of an attempt. */
export type AttemptResult =
  | { readonly kind: 'delivered' }
  /** The process stops: whether the message arrived is unknown, and it is sent again. */
  | { readonly kind: 'stopped' }
  /** Not attempted: the endpoint was changed, disabled or deleted meanwhile. */
  | { readonly kind: 'unwanted' }
  | AttemptFailure;

export interface AttemptFailure {
  readonly kind: 'failed';
  readonly status: number | undefined;
  /** One word. */
  readonly reason: string;
  readonly retryAfterS: number | undefined;
}
