import { createHmac, timingSafeEqual } from 'node:crypto';
import type { AsOf } from '../clickhouse/stored.ts';

/**
 * Where the page after one begins. It holds what the first page has settled, so that later ones
 * answer the same question while new pills arrive. Signed: it is checked, never trusted.
 */
export type PageState = PlaceState | TimeState;

export interface PlaceState {
  /** The last place that the page before looked at. */
  readonly at: readonly [partition: number, offset: number];
  /** How far history was at the first page, where the question had no end. */
  readonly stored: readonly (readonly [partition: number, offset: number])[] | null;
}

export interface TimeState {
  /** Order time (µs), epoch and offset of the last pill of the page before, or after it. */
  readonly key: readonly [order: number, epoch: string, offset: number];
  /** What history knew at the first page. */
  readonly asOf: AsOf;
}

/** Longer ones are not looked at. */
const TOKEN_CHARS_MAX = 32_768;

/** @param question what the page belongs to, see `questionText` */
export function signPage(state: PageState, question: string, pepper: Buffer): string {
  const payload = Buffer.from(JSON.stringify(state)).toString('base64url');
  return `${payload}.${macOf(payload, question, pepper).toString('base64url')}`;
}

/** @returns undefined when it is not ours, or of another question */
export function readPage(token: string, question: string, pepper: Buffer): PageState | undefined {
  if (token.length > TOKEN_CHARS_MAX) return undefined;
  const match = /^([\w-]+)\.([\w-]{43})$/.exec(token);
  if (match === null) return undefined;
  const given = Buffer.from(match[2]!, 'base64url');
  if (!timingSafeEqual(given, macOf(match[1]!, question, pepper))) return undefined;
  return JSON.parse(Buffer.from(match[1]!, 'base64url').toString('utf8'));
}

function macOf(payload: string, question: string, pepper: Buffer): Buffer {
  const text = JSON.stringify(['page', question, payload]);
  return createHmac('sha256', pepper).update(text).digest();
}
