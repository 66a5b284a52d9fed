import type { DeskAccess } from '../../../domain/access/account-access.ts';
import type { Role } from '../../../domain/access/roles.ts';
import type { Tier } from '../../../domain/access/tiers.ts';

/** The identity of a connection, and the rights of its account. Times are Unix ms. */
export interface Principal {
  readonly accountId: string;
  readonly tier: Tier;
  /** Key or authentication scheme; undefined if a signed-in session requested the ticket. */
  readonly keyId: string | undefined;
  /** The sign-in that the connection depends on; undefined with a key. */
  readonly sessionHash: Buffer | undefined;
  /** Role of the user who signed in; undefined with a key. */
  readonly role?: Role | undefined;
  /** When the token ends that opened the connection; undefined if none did. */
  readonly tokenEndsAtMs?: number | undefined;
  /** `pil_live_…ab12`, the name of a scheme, or `session`. */
  readonly hint: string;
  /** When the key, the token or the subscription expires. */
  readonly endsAtMs: number;
  readonly connectionsMax: number;
  /** Desk of the key, whose limits hold too; undefined = none. */
  readonly desk?: Pick<DeskAccess, 'id' | 'name' | 'connectionsMax' | 'symbols'> | undefined;
  readonly symbolsMax: number;
}

/** Whether a connection may subscribe to a symbol, or to `*`. */
export function maySee({ desk }: Pick<Principal, 'desk'>, symbol: string): boolean {
  return desk?.symbols === undefined || desk.symbols.has(symbol);
}
