import type { WebhookEvent } from './webhook-events.ts';

/** Headers of a delivery: a `Headers` object, Node's `request.headers`, or another record. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyWebhookOptions {
  /** Largest difference between the message's time and the clock, in seconds; 300 by default. */
  readonly toleranceS?: number;
  /** Replaces this machine's clock. */
  readonly now?: Date;
}

export type WebhookVerificationCode =
  | 'header_missing'
  | 'timestamp_malformed'
  | 'too_old'
  | 'too_new'
  | 'signature_mismatch'
  | 'secret_malformed'
  | 'body_malformed';

/** Why a delivery cannot be trusted; the message says what to do. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly code: WebhookVerificationCode;

  constructor(code: WebhookVerificationCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** As in the reference libraries: a longer tolerance allows replay attacks for longer. */
const TOLERANCE_S = 300;

/** An event of a type that this version of the client does not know. */
export interface UnknownWebhookEvent {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Verifies a delivery by Standard Webhooks 1.0 (HMAC-SHA256 over id, time and body).
 * @param body the raw bytes or text, before any parser has read it
 * @param secrets `whsec_…`; several during a rotation, when any of them may have signed
 * @throws WebhookVerificationError: answer 401
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
  options: VerifyWebhookOptions = {},
): Promise<WebhookEvent> {
  const keys = (typeof secrets === 'string' ? [secrets] : secrets).map(secretBytes);
  if (keys.length === 0) throw failure('secret_malformed', `No secret is set. ${SECRET_HOW}`);
  const bytes = bytesOf(body);
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature');
  checkTime(timestamp, options);
  const presented = signatures
    .split(' ')
    .filter((signature) => signature.startsWith('v1,'))
    .map((signature) => signature.slice(3));
  const content = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  let isSigned = false;
  // Every key is compared, even after a match, so that the time reveals nothing about them.
  for (const key of keys) {
    const expected = await sign(key, content);
    for (const signature of presented) isSigned = isEqual(signature, expected) || isSigned;
  }
  if (isSigned) return eventOf(bytes);
  throw failure(
    'signature_mismatch',
    'No signature matches: compare your secret with that of the endpoint, and verify the raw body, ' +
      'byte for byte, before anything parses it.',
  );
}

/**
 * The body with which to answer an event: for `endpoint.test` the challenge, with a 2xx;
 * undefined: any 2xx answer will do.
 */
export function challengeAnswer(event: WebhookEvent): string | undefined {
  return event.type === 'endpoint.test' ? event.data.challenge : undefined;
}

const SECRET_HOW =
  'Use the secret of the endpoint exactly as it was shown: whsec_ followed by base64.';
/** By Standard Webhooks: 24 to 64 bytes. */
const SECRET_BYTES = { min: 24, max: 64 } as const;

/** The bytes of a `whsec_…` text. @throws WebhookVerificationError */
export function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const text = typeof secret === 'string' ? secret.trim().replace(/^whsec_/, '') : '';
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(text) && text.replace(/=+$/, '').length % 4 !== 1) {
    const bytes = Uint8Array.from(atob(text.replace(/=+$/, '')), (char) => char.charCodeAt(0));
    if (bytes.length >= SECRET_BYTES.min && bytes.length <= SECRET_BYTES.max) return bytes;
  }
  throw failure('secret_malformed', `This is not a webhook secret. ${SECRET_HOW}`);
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  if (
    body instanceof Uint8Array ||
    Object.prototype.toString.call(body) === '[object Uint8Array]'
  ) {
    return body;
  }
  throw failure(
    'body_malformed',
    'The body is neither text nor bytes: pass the raw body, not the result of a parser.',
  );
}

function headerOf(headers: WebhookHeaders, name: string): string {
  let value: unknown;
  if (typeof headers.get === 'function') value = headers.get(name);
  else {
    const found = Object.keys(headers).find((key) => key.toLowerCase() === name);
    value = found === undefined ? undefined : (headers as Record<string, unknown>)[found];
  }
  const text = Array.isArray(value) ? value.join(' ') : value;
  if (typeof text === 'string' && text !== '') return text;
  throw failure(
    'header_missing',
    `The header ${name} is missing: pass all headers of the delivery; pillole always sends this one.`,
  );
}

function checkTime(timestamp: string, options: VerifyWebhookOptions): void {
  const { toleranceS = TOLERANCE_S, now = new Date() } = options;
  const nowS = Math.floor(now.getTime() / 1_000);
  // With NaN every comparison would be false, and every message would count as recent.
  if (!(toleranceS >= 0) || Number.isNaN(nowS)) {
    throw new RangeError(
      'toleranceS must be a number of seconds, 0 or more, and now must be a valid date.',
    );
  }
  if (!/^(0|[1-9]\d{0,11})$/.test(timestamp)) {
    throw failure(
      'timestamp_malformed',
      'The header webhook-timestamp is not a number of seconds since 1970: pillole did not send it.',
    );
  }
  const ageS = nowS - Number(timestamp);
  if (ageS > toleranceS) {
    throw failure(
      'too_old',
      `The delivery was sent ${ageS} s ago, and ${toleranceS} s are allowed: it is a replay, or the ` +
        'clock of this machine is ahead: set it by NTP.',
    );
  }
  if (-ageS > toleranceS) {
    throw failure(
      'too_new',
      `The delivery was sent ${-ageS} s in the future, and ${toleranceS} s are allowed: the clock of ` +
        'this machine is behind: set it by NTP.',
    );
  }
}

async function sign(key: Uint8Array<ArrayBuffer>, content: Uint8Array<ArrayBuffer>) {
  const { subtle } = globalThis.crypto;
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const imported = await subtle.importKey('raw', key, algorithm, false, ['sign']);
  const hash = new Uint8Array(await subtle.sign('HMAC', imported, content));
  return btoa(String.fromCharCode(...hash));
}

/** Compares in constant time: every character, wherever the first difference is. */
function isEqual(presented: string, expected: string): boolean {
  if (presented.length !== expected.length) return false;
  let difference = 0;
  for (let at = 0; at < expected.length; at += 1) {
    difference |= presented.charCodeAt(at) ^ expected.charCodeAt(at);
  }
  return difference === 0;
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const content = new Uint8Array(head.length + tail.length);
  content.set(head);
  content.set(tail, head.length);
  return content;
}

function eventOf(bytes: Uint8Array): WebhookEvent {
  let event: unknown;
  try {
    event = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    event = undefined;
  }
  const { type, timestamp, data } = (event ?? {}) as Readonly<Record<string, unknown>>;
  const isEvent = typeof type === 'string' && typeof timestamp === 'string' && isObject(data);
  if (isEvent) return event as WebhookEvent;
  throw failure(
    'body_malformed',
    'The signature is valid, but the body is not an event {"type", "timestamp", "data"}. Does another ' +
      'service use this secret?',
  );
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function failure(code: WebhookVerificationCode, message: string): WebhookVerificationError {
  return new WebhookVerificationError(code, message);
}
