import { Secret, TOTP } from 'otpauth';

/** RFC 6238 with the values that all authenticator apps support. */
const PERIOD_S = 30;
/** Steps before and after the present one that are accepted, for clocks that differ. */
const WINDOW = 1;
/** RFC 4226 section 4 recommends 160 bits. */
const SECRET_BYTES = 20;

/** Makes a secret. @returns its bytes, which are sealed for the database */
export function newTotpSecret(): Buffer {
  return Buffer.from(new Secret({ size: SECRET_BYTES }).bytes);
}

/** The secret as text, and as the link that apps read from a QR code. */
export function totpSetup(secret: Buffer, email: string) {
  const totp = totpOf(secret, email);
  return { secret: totp.secret.base32, uri: totp.toString() };
}

/** @returns the time step of a code of the last, present or next 30 s; undefined = a wrong code */
export function totpStep(secret: Buffer, code: string, nowMs: number): number | undefined {
  const totp = totpOf(secret, '');
  const delta = totp.validate({ token: code, timestamp: nowMs, window: WINDOW });
  return delta === null ? undefined : totp.counter({ timestamp: nowMs }) + delta;
}

function totpOf(secret: Buffer, label: string): TOTP {
  const bytes = new Uint8Array(secret).buffer;
  return new TOTP({
    issuer: 'pillole',
    label,
    algorithm: 'SHA1',
    digits: 6,
    period: PERIOD_S,
    secret: new Secret({ buffer: bytes }),
  });
}
