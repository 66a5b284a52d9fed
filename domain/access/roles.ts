/** What a member of an account is, from the most rights to the fewest. */
export const ROLES = ['owner', 'admin', 'developer', 'billing', 'read_only'] as const;
export type Role = (typeof ROLES)[number];

const ALL = ROLES;
const MANAGES = ['owner', 'admin'] as const;
const DEVELOPS = [...MANAGES, 'developer'] as const;
const READS = [...DEVELOPS, 'read_only'] as const;

/**
 * Who may do what by session. Each route that accepts sessions names one of these permissions, and
 * the guard of the API looks it up here: there is no other check of a role but the rules about
 * members themselves.
 */
export const PERMISSIONS = {
  /** The own sign-ins, password and second factor. */
  profile: ALL,
  'account:read': ALL,
  'account:change': MANAGES,
  'account:export': MANAGES,
  'account:close': ['owner'],
  'audit:read': MANAGES,
  'billing:read': [...MANAGES, 'billing'],
  'billing:change': ['owner', 'billing'],
  'members:read': ALL,
  'members:change': MANAGES,
  'keys:read': READS,
  'keys:change': DEVELOPS,
  'desks:read': READS,
  'desks:change': MANAGES,
  'schemes:read': READS,
  'schemes:change': MANAGES,
  'sockets:read': READS,
  'sockets:change': DEVELOPS,
  'webhooks:read': READS,
  'webhooks:change': DEVELOPS,
  'destinations:read': READS,
  'destinations:change': DEVELOPS,
  /** Reads of pills, and sockets of a browser. */
  'pills:read': READS,
  'exports:read': READS,
  'exports:change': DEVELOPS,
  support: [...DEVELOPS, 'billing'],
} as const satisfies Readonly<Record<string, readonly Role[]>>;
export type Permission = keyof typeof PERMISSIONS;

export function mayDo(role: Role, permission: Permission): boolean {
  return (PERMISSIONS[permission] as readonly Role[]).includes(role);
}
