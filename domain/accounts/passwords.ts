import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { isEasyToGuess } from './password-strength.ts';

/** OWASP Password Storage Cheat Sheet: N=2^17 (`ln` = 17), r=8, p=1; 128 MiB and about 0.3 s each. */
const COST = { ln: 17, r: 8, p: 1 };
/** Each hash takes a thread and 128 MiB; others wait, and beyond the queue they are refused. */
const HASHES_MAX = 2;
const WAITING_MAX = 50;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
export const PASSWORD_CHARS_MIN = 10;
export const PASSWORD_CHARS_MAX = 128;

/** More hashing is requested than this process accepts. */
export class PasswordsBusyError extends Error {
  override readonly name = 'PasswordsBusyError';
}

export type Passwords = ReturnType<typeof createPasswords>;

/**
 * Hashes and checks passwords. Both methods throw PasswordsBusyError at the bound.
 * @param cost of new hashes; stored hashes carry their own
 */
export function createPasswords(cost = COST) {
  let running = 0;
  const waiting: (() => void)[] = [];
  const derive = async (password: string, salt: Buffer, { ln, r, p }: typeof COST) => {
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
  const unknown = { cost, salt: randomBytes(SALT_BYTES), hash: randomBytes(HASH_BYTES) };
  const hash = async (password: string): Promise<string> => {
    const salt = randomBytes(SALT_BYTES);
    const key = await derive(password, salt, cost);
    return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${base64(salt)}$${base64(key)}`;
  };
  return {
    hash,
    /**
     * Hashes a new password of a user. @returns undefined if it is easy to guess. This is checked
     * after hashing, whose pace bounds the time that the checks take from the event loop to a tenth.
     */
    async hashNew(password: string, email: string): Promise<string | undefined> {
      const hashed = await hash(password);
      return isEasyToGuess(password, [email, ...email.split('@')]) ? undefined : hashed;
    },
    /**
     * Whether a password matches a hash. For an unknown user the hash is undefined: the same work is
     * done, so that the time does not reveal who has an account.
     */
    async verify(password: string, text: string | undefined): Promise<boolean> {
      const stored = (text === undefined ? undefined : parseHash(text)) ?? unknown;
      const hash = await derive(password, stored.salt, stored.cost);
      return timingSafeEqual(hash, stored.hash) && stored !== unknown;
    },
  };
}

/** Why a password that is easy to guess is not accepted. */
export const EASY_TO_GUESS =
  'is easy to guess: it is common, or made of common words, keyboard rows, dates, repetitions or ' +
  'your address. Use several unrelated words, or a password manager.';

/** Why a password is not accepted, before it is hashed; undefined if it may be. */
export function passwordFault(password: string, email: string): string | undefined {
  const length = [...password.normalize('NFKC')].length;
  if (length < PASSWORD_CHARS_MIN) return `must have at least ${PASSWORD_CHARS_MIN} characters.`;
  if (length > PASSWORD_CHARS_MAX) return `must have at most ${PASSWORD_CHARS_MAX} characters.`;
  const lower = password.toLowerCase();
  if (lower === email || lower === email.split('@')[0]) return 'must not be the e-mail address.';
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
