/**
 * What a key may be used for. `read`: every read of the REST API that keys may make; it writes
 * nothing. `stream`: sockets and their tickets. `exports`: to create, read, download and remove exports.
 * `webhooks:read`: endpoints and deliveries alone.
 * `webhooks:write`: to manage endpoints and post messages again. `support`: to open tickets.
 */
export const SCOPES = [
  'read',
  'stream',
  'exports',
  'webhooks:read',
  'webhooks:write',
  'support',
] as const;
export type Scope = (typeof SCOPES)[number];

/** Scopes of a new key that names none; a scope that changes something must be named. */
export const DEFAULT_SCOPES = ['read', 'stream'] as const satisfies readonly Scope[];

/** Scopes that another scope includes. */
const INCLUDED: Partial<Readonly<Record<Scope, readonly Scope[]>>> = {
  read: ['webhooks:read'],
  'webhooks:write': ['webhooks:read'],
};

/** Whether a key with these scopes has the needed one. */
export function hasScope(scopes: readonly Scope[], needed: Scope): boolean {
  return scopes.some((scope) => scope === needed || INCLUDED[scope]?.includes(needed) === true);
}
