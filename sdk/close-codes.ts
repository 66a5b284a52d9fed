/** What a close code of the stream says. */
export interface CloseMeaning {
  readonly name: string;
  readonly reconnect: boolean;
}

/** The contract's close codes: 40xx come back, 45xx do not. */
const CODES: Readonly<Record<number, string>> = {
  4000: 'drain',
  4001: 'slow_consumer',
  4002: 'peer_silent',
  4003: 'log_unavailable',
  4004: 'credential_expired',
  4005: 'internal',
  4006: 'too_fast',
  4500: 'auth_missing',
  4501: 'key_invalid',
  4502: 'key_revoked',
  4503: 'tier_too_low',
  4504: 'taken_over',
  4505: 'protocol_error',
  4506: 'frame_too_large',
  4507: 'origin_refused',
  4508: 'connection_limit',
  4509: 'address_refused',
  4510: 'subscription_ended',
  4511: 'dedicated_removed',
};

/** 1007 bad UTF-8, 1009 too large: a frame of ours was refused, and would be again. */
const OURS_TO_BLAME: ReadonlySet<number> = new Set([1007, 1009]);

/** What to do after a close; codes that are not in the contract go by their range. */
export function meaningOf(code: number): CloseMeaning {
  const reconnect = !(OURS_TO_BLAME.has(code) || (code >= 4500 && code <= 4999));
  return { name: CODES[code] ?? (code === 1006 ? 'connection_lost' : `closed_${code}`), reconnect };
}
