import type { Tier } from '../../../domain/access/tiers.ts';

/** The identity of a connection, and the rights of its account. Times are Unix ms. */
export interface Principal {
  readonly accountId: string;
  readonly tier: Tier;
  /** undefined if a signed-in session requested the ticket. */
  readonly keyId: string | undefined;
  /** The sign-in that the connection depends on; undefined with a key. */
  readonly sessionHash: Buffer | undefined;
  /** `pil_live_…ab12`, or `session`. */
  readonly hint: string;
  /** When the key or the subscription expires. */
  readonly endsAtMs: number;
  readonly connectionsMax: number;
  readonly symbolsMax: number;
}
