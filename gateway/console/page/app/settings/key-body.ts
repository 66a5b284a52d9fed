export interface ApiKey {
  readonly id: string;
  readonly hint: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly allow_cidrs: readonly string[];
  readonly live: boolean;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly replaced_by: string | null;
  readonly last_used_at: string | null;
}

/** The only answer that has the key itself. It stays in memory while it is shown. */
export interface NewKey {
  readonly key: string;
  readonly record: ApiKey;
}

export const SCOPES = [
  ['read', 'Every read of the API; changes nothing'],
  ['stream', 'Sockets and their tickets'],
  ['exports', 'Create, download and remove files of history'],
  ['webhooks:read', 'Webhook endpoints and deliveries, nothing else'],
  ['webhooks:write', 'Create, change, delete and test webhook endpoints'],
  ['support', 'Open support tickets'],
] as const;
export const DEFAULT_SCOPES: readonly string[] = ['read', 'stream'];
