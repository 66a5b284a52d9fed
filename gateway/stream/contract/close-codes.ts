export interface CloseCode {
  readonly code: number;
  /** Whether a client does well to connect again. */
  readonly reconnect: boolean;
  readonly meaning: string;
}

/** Every close code of ours. Contract: never renumbered. 1006, 1007 and 1009 are uWS's own. */
export const CLOSE_CODES = {
  drain: { code: 4000, reconnect: true, meaning: 'This instance stops; others go on.' },
  slow_consumer: { code: 4001, reconnect: true, meaning: 'Too much waited unread.' },
  peer_silent: {
    code: 4002,
    reconnect: true,
    meaning: 'Kept for the future: a peer that answers no pings ends with 1006.',
  },
  log_unavailable: {
    code: 4003,
    reconnect: true,
    meaning: 'Pills, or accounts, cannot be read right now.',
  },
  credential_expired: { code: 4004, reconnect: true, meaning: 'The credential ran out.' },
  internal: { code: 4005, reconnect: true, meaning: 'A fault of ours.' },
  too_fast: { code: 4006, reconnect: true, meaning: 'Too many frames a second.' },
  auth_missing: { code: 4500, reconnect: false, meaning: 'No credential in time.' },
  key_invalid: { code: 4501, reconnect: false, meaning: 'The key is not accepted.' },
  key_revoked: { code: 4502, reconnect: false, meaning: 'The key was revoked.' },
  tier_too_low: { code: 4503, reconnect: false, meaning: 'The plan has no streams.' },
  taken_over: { code: 4504, reconnect: false, meaning: 'The owner closed it.' },
  protocol_error: { code: 4505, reconnect: false, meaning: 'Too many faulty frames.' },
  frame_too_large: { code: 4506, reconnect: false, meaning: 'A frame was over the limit.' },
  origin_refused: { code: 4507, reconnect: false, meaning: 'The page may not connect.' },
  connection_limit: { code: 4508, reconnect: false, meaning: 'Too many connections.' },
  address_refused: { code: 4509, reconnect: false, meaning: 'The address may not connect.' },
  subscription_ended: { code: 4510, reconnect: false, meaning: 'The plan has ended.' },
  dedicated_removed: {
    code: 4511,
    reconnect: false,
    meaning: 'The dedicated socket was removed, or its rotation is over.',
  },
} as const satisfies Readonly<Record<string, CloseCode>>;

export type CloseName = keyof typeof CLOSE_CODES;
