import { type AccountRule, ownAccount, signedIn, withFreshFactor } from '../server/access-rule.ts';

/** What all routes of destinations share. */
export const DESTINATIONS = { tag: 'destinations' } as const;

/** Needs no capability: after a downgrade, destinations can still be read. */
export const READS: AccountRule = ownAccount('read', 'destinations:read');

const SIGNED_IN = signedIn('destinations:change');

/** By session only: a leaked key must not send pills elsewhere. */
export const CHANGES: AccountRule = withFreshFactor({ ...SIGNED_IN, capability: 'destinations' });

/** Ends deliveries: at once, and after a downgrade too. */
export const REMOVES: AccountRule = SIGNED_IN;
