import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

export interface ScryptCost {
  /** log2 of N. */
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

/** OWASP Password Storage Cheat Sheet: N=2^17, r=8, p=1; 128 MiB and some 0.3 s each. */
const COST: ScryptCost = { ln: 17, r: 8, p: 1 };
/** Each takes a thread and 128 MiB; the rest waits, and beyond the queue is told so. */
const HASHES_MAX = 2;
const WAITING_MAX = 50;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
export const PASSWORD_CHARS_MIN = 10;
export const PASSWORD_CHARS_MAX = 128;

/** More hashing is asked for than this process takes. */
export class PasswordsBusyError extends Error {
  override readonly name = 'PasswordsBusyError';
}

/** Hashes and checks passwords. Both throw PasswordsBusyError at the bound. */
export interface Passwords {
  hash(password: string): Promise<string>;
  /**
   * Whether a password is the one of a hash. An unknown user's hash is undefined: the same work is
   * done, so that the time does not tell who has an account.
   */
  verify(password: string, hash: string | undefined): Promise<boolean>;
}

/** Creates the hasher. @param cost of new hashes; those in the table carry their own */
export function createPasswords(cost: ScryptCost = COST): Passwords {
  let running = 0;
  const waiting: (() => void)[] = [];
  const derive = async (password: string, salt: Buffer, { ln, r, p }: ScryptCost) => {
    if (running >= HASHES_MAX) {
      if (waiting.length >= WAITING_MAX) throw new PasswordsBusyError('too many passwords');
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running += 1;
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        const options = { N: 2 ** ln, r, p, maxmem: 256 * 2 ** ln * r };
        scrypt(password.normalize('NFKC'), salt, HASH_BYTES, options, (error, key) =>
          error === null ? resolve(key) : reject(error),
        );
      });
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
  const nobody = { cost, salt: randomBytes(SALT_BYTES), hash: randomBytes(HASH_BYTES) };
  return {
    async hash(password) {
      const salt = randomBytes(SALT_BYTES);
      const hash = await derive(password, salt, cost);
      return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${base64(salt)}$${base64(hash)}`;
    },
    async verify(password, text) {
      const stored = (text === undefined ? undefined : parseHash(text)) ?? nobody;
      const hash = await derive(password, stored.salt, stored.cost);
      return timingSafeEqual(hash, stored.hash) && stored !== nobody;
    },
  };
}

/** Why a password is not taken; undefined when it is. */
export function passwordFault(password: string, email: string): string | undefined {
  const length = [...password.normalize('NFKC')].length;
  if (length < PASSWORD_CHARS_MIN) return `At least ${PASSWORD_CHARS_MIN} characters.`;
  if (length > PASSWORD_CHARS_MAX) return `At most ${PASSWORD_CHARS_MAX} characters.`;
  const lower = password.toLowerCase();
  if (lower === email || lower === email.split('@')[0]) return 'Not the address itself.';
  if (new Set(lower).size < 4) return 'Not the same few characters again and again.';
  if (/^(?:password|1234567890|qwertyuiop|letmein)/.test(lower)) {
    return 'It is among the first that anyone would try.';
  }
  return undefined;
}

/** PHC string format, with scrypt's parameters. */
function parseHash(text: string) {
  const parts = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d)\$([\w+/]+)\$([\w+/]{43})$/.exec(text);
  if (parts === null) return undefined;
  const [, ln, r, p, salt = '', hash = ''] = parts;
  return {
    cost: { ln: Number(ln), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  };
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}
