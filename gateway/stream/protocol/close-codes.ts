/** Clients connect again after 40xx, but not after 45xx. */
const close = (code: number, meaning: string) => ({ code, reconnect: code < 4500, meaning });

/**
 * Every close code the server sends on purpose; `reconnect` says whether a client should connect
 * again. Contract: codes are never renumbered. 1006, 1007 and 1009 come from uWS.
 */
export const CLOSE_CODES = {
  drain: close(4000, 'This instance is stopping; connect to another.'),
  slow_consumer: close(4001, 'The client read too slowly and its queue overflowed.'),
  peer_silent: close(4002, 'Reserved. A peer that answers no pings is closed with 1006.'),
  log_unavailable: close(4003, 'Pills or accounts are temporarily unavailable.'),
  credential_expired: close(4004, 'The credential has expired.'),
  internal: close(4005, 'Internal server error.'),
  too_fast: close(4006, 'The client sent too many frames per second, or signed too often.'),
  auth_missing: close(4500, 'No credential arrived in time.'),
  key_invalid: close(4501, 'The key was not accepted.'),
  key_revoked: close(4502, 'The key was revoked.'),
  tier_too_low: close(4503, 'The plan does not include streams.'),
  taken_over: close(4504, 'The account owner closed the connection.'),
  protocol_error: close(4505, 'The client sent too many invalid frames.'),
  frame_too_large: close(4506, 'A frame exceeded the size limit.'),
  origin_refused: close(4507, 'Pages of this origin may not connect.'),
  connection_limit: close(4508, 'Too many connections are open.'),
  address_refused: close(4509, 'The key may not be used from this address.'),
  subscription_ended: close(4510, 'The subscription has ended.'),
  dedicated_removed: close(
    4511,
    'The dedicated socket was removed, the overlap of its rotation has ended, or it is not served here.',
  ),
} as const;

export type CloseName = keyof typeof CLOSE_CODES;

/** Closes that say nothing about an attack. */
const OF_THE_SERVER: readonly CloseName[] = [
  'drain',
  'slow_consumer',
  'peer_silent',
  'log_unavailable',
  'internal',
];

/** Whether a socket that was closed for this reason is counted as a security event. */
export function isSecurityClose(reason: CloseName | 'peer'): boolean {
  return reason !== 'peer' && !OF_THE_SERVER.includes(reason);
}
