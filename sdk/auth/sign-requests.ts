import {
  createHash,
  createHmac,
  createPrivateKey,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { httpbis } from 'http-message-signatures';
import { PilloleError } from '../error.ts';
import type { Auth } from './auth.ts';

/** Of schemes with HMAC; the platform makes them. */
const SECRET_BYTES = 32;

export type SigningOptions =
  | {
      /** Id of the scheme, `aut_…`. */
      readonly schemeId: string;
      readonly algorithm: 'ed25519' | 'ecdsa-p256-sha256';
      /** In PEM, or as `createPrivateKey` of `node:crypto` returns it. */
      readonly privateKey: KeyObject | string;
    }
  | {
      readonly schemeId: string;
      readonly algorithm: 'hmac-sha256';
      /** In base64, as the platform showed it once. */
      readonly secret: string;
    };

/**
 * Signs each request as the platform demands (RFC 9421): method, target, digest of a body, the time,
 * the scheme and a new nonce.
 * @throws PilloleError `auth_malformed` if the key does not fit the algorithm
 */
export function signRequests(options: SigningOptions): Auth {
  const { schemeId, algorithm } = options;
  if (!/^aut_[0-9a-z]{12}$/.test(schemeId)) {
    throw malformed('schemeId must be the id of an authentication scheme, aut_ and 12 characters.');
  }
  const key = { id: schemeId, sign: signerOf(options) };
  return async ({ method, url, body }) => {
    const digest = body === undefined ? undefined : digestOf(body);
    const unsigned = digest === undefined ? {} : { 'content-digest': digest };
    const { headers } = await httpbis.signMessage(
      {
        key,
        name: 'sig1',
        fields: ['@method', '@target-uri', ...Object.keys(unsigned)],
        params: ['created', 'keyid', 'nonce'],
        paramValues: { nonce: randomBytes(18).toString('base64') },
      },
      { method, url, headers: unsigned },
    );
    return flat(headers);
  };

  function signerOf(of: SigningOptions): (base: Buffer) => Promise<Buffer> {
    if (of.algorithm === 'hmac-sha256') {
      const secret = Buffer.from(of.secret, 'base64');
      if (secret.length !== SECRET_BYTES) {
        throw malformed('secret must be the secret of the scheme, exactly as it was shown.');
      }
      return async (base) => createHmac('sha256', secret).update(base).digest();
    }
    const privateKey = readPrivateKey(of.privateKey);
    const isEd25519 = privateKey.asymmetricKeyType === 'ed25519';
    const isP256 = privateKey.asymmetricKeyDetails?.namedCurve === 'prime256v1';
    if (!(algorithm === 'ed25519' ? isEd25519 : isP256)) {
      throw malformed(`privateKey is not a key for ${algorithm}.`);
    }
    // RFC 9421, section 3.3.4: the signature is r and s, 32 bytes each.
    return async (base) =>
      isEd25519
        ? sign(null, base, privateKey)
        : sign('sha256', base, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  }
}

function readPrivateKey(key: KeyObject | string): KeyObject {
  if (typeof key !== 'string') return key;
  try {
    return createPrivateKey(key);
  } catch {
    // The error of the parser might quote the key.
    throw malformed('privateKey must be a private key in PEM, without a passphrase.');
  }
}

function digestOf(body: string): string {
  return `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
}

function flat(headers: Readonly<Record<string, string | string[]>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
  );
}

function malformed(message: string): PilloleError {
  return new PilloleError({ code: 'auth_malformed', message });
}
