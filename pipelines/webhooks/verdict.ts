/** What an attempt came to. */
export type AttemptVerdict =
  | { readonly kind: 'delivered' }
  /** We stop: whether it came is unknown, and it is sent again. */
  | { readonly kind: 'stopped' }
  /** Not attempted: its owner has changed, disabled or deleted the endpoint meanwhile. */
  | { readonly kind: 'unwanted' }
  | {
      readonly kind: 'failed';
      readonly status: number | undefined;
      /** One word. */
      readonly reason: string;
      readonly retryAfterS: number | undefined;
    };
