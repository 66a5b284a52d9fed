import { asPilloleError } from '../error.ts';

/** A request that is about to be sent. */
export interface OutgoingRequest {
  readonly method: string;
  /** Complete, with its query; `wss://…` for a socket. */
  readonly url: string;
  /** Undefined if the request has no body. */
  readonly body?: string | undefined;
}

/**
 * Makes the headers that prove who sends a request. The client calls it before each attempt and each
 * connection, since a signature is accepted once and a token ends.
 */
export type Auth = (
  request: OutgoingRequest,
) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;

/**
 * Proves requests by tokens of your own issuer.
 * @param token returns a JWT that is still valid for some seconds, e.g. from your issuer or a cache
 */
export function bearerTokens(token: () => string | Promise<string>): Auth {
  return async () => ({ authorization: `Bearer ${await token()}` });
}

/** What a client proves its requests with: an API key, or `auth`; neither in a browser with tickets. */
export interface Credentials {
  readonly key: string | undefined;
  readonly auth: Auth | undefined;
}

/**
 * The headers that prove one request.
 * @throws PilloleError `auth_failed` if `auth` throws; the same request may succeed later
 */
export async function credentialHeaders(
  { key, auth }: Credentials,
  request: OutgoingRequest,
): Promise<Readonly<Record<string, string>>> {
  if (auth === undefined) return key === undefined ? {} : { 'x-api-key': key };
  try {
    return await auth(request);
  } catch (error) {
    throw asPilloleError(error, 'auth_failed');
  }
}
