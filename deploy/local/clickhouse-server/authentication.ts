import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { refusal } from './clickhouse-error.ts';

export type User = 'default' | 'analyst';
export type Passwords = Readonly<Record<User, string>>;

/**
 * The user of a request, by `X-ClickHouse-User` and `X-ClickHouse-Key`, Basic authentication, or
 * `user` and `password` in the URL: the ways of ClickHouse's HTTP interface, in its order. Decided
 * before the body is read, so a form cannot name a user.
 * @throws ClickHouseError for an unknown user and a wrong or missing password alike
 */
export function authenticate(request: IncomingMessage, url: URL, passwords: Passwords): User {
  const { name, password } = credentialsOf(request, url.searchParams);
  const isUser = name === 'default' || name === 'analyst';
  const expected = passwords[isUser ? name : 'default'];
  if (timingSafeEqual(digest(password), digest(expected)) && isUser) return name;
  throw refusal(
    'AUTHENTICATION_FAILED',
    `${name}: Authentication failed: password is incorrect, or there is no user with such name`,
  );
}

function credentialsOf({ headers }: IncomingMessage, fields: URLSearchParams) {
  const named = headers['x-clickhouse-user'];
  const key = headers['x-clickhouse-key'];
  if (named !== undefined || key !== undefined) {
    return { name: String(named ?? 'default'), password: String(key ?? '') };
  }
  const basic = /^Basic (.+)$/i.exec(headers.authorization ?? '')?.[1];
  if (basic !== undefined) {
    const [name = '', ...rest] = Buffer.from(basic, 'base64').toString().split(':');
    return { name, password: rest.join(':') };
  }
  return { name: fields.get('user') ?? 'default', password: fields.get('password') ?? '' };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
