import type { WebhookEvent } from './webhook-events.ts';

/** Headers of a delivery: a `Headers` object, Node's `request.headers`, or a record of them. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyWebhookOptions {
  /** How old or new a message may be, in seconds. */
  readonly toleranceS?: number;
  /** Instead of this machine's clock. */
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

/** Why a delivery is not to be trusted; the message says what to do. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly code: WebhookVerificationCode;

  constructor(code: WebhookVerificationCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** As in the reference libraries: longer ones let an overheard message be played again for longer. */
const TOLERANCE_S = 300;

/**
 * Verifies a delivery by Standard Webhooks 1.0 (HMAC-SHA256 over id, time and body).
 * @param body as it came, byte for byte: before any parser has read it
 * @param secrets `whsec_…`; several while one replaces another: any of them may have signed
 * @throws WebhookVerificationError; answer 401 then
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
  options: VerifyWebhookOptions = {},
): Promise<WebhookEvent> {
  const keys = (typeof secrets === 'string' ? [secrets] : secrets).map(secretBytes);
  if (keys.length === 0) throw failure('secret_malformed', `No secret was given. ${SECRET_HOW}`);
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
  // All are compared, whichever fits: the time it takes tells nothing of them.
  for (const key of keys) {
    const expected = await sign(key, content);
    for (const signature of presented) isSigned = isEqual(signature, expected) || isSigned;
  }
  if (isSigned) return eventOf(bytes);
  throw failure(
    'signature_mismatch',
    'No signature fits: compare the secret with that of the endpoint, and verify the body as it ' +
      'came, byte for byte, before anything parses it.',
  );
}

/**
 * What to answer an event with: to `endpoint.test` the challenge, with a 2xx; undefined = any 2xx
 * will do.
 */
export function challengeAnswer(event: WebhookEvent): string | undefined {
  return event.type === 'endpoint.test' ? event.data.challenge : undefined;
}

const SECRET_HOW = 'Give the secret of the endpoint as it was told: whsec_ and base64.';
/** By Standard Webhooks: 24 to 64 bytes. */
const SECRET_BYTES = { min: 24, max: 64 } as const;

/** The bytes of a `whsec_…` text. @throws WebhookVerificationError */
export function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const text = typeof secret === 'string' ? secret.trim().replace(/^whsec_/, '') : '';
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(text) && text.replace(/=+$/, '').length % 4 !== 1) {
    const bytes = Uint8Array.from(atob(text.replace(/=+$/, '')), (char) => char.charCodeAt(0));
    if (bytes.length >= SECRET_BYTES.min && bytes.length <= SECRET_BYTES.max) return bytes;
  }
  throw failure('secret_malformed', `This is no secret of a webhook. ${SECRET_HOW}`);
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
    'The body is neither text nor bytes: give it as it came, not what a parser made of it.',
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
    `There is no header ${name}: pass on all headers of the delivery; what comes without is not ours.`,
  );
}

function checkTime(timestamp: string, options: VerifyWebhookOptions): void {
  const { toleranceS = TOLERANCE_S, now = new Date() } = options;
  const nowS = Math.floor(now.getTime() / 1_000);
  // NaN would make every comparison false, and so every message young.
  if (!(toleranceS >= 0) || Number.isNaN(nowS)) {
    throw new RangeError('toleranceS must be a number of seconds from 0, and now a valid date.');
  }
  if (!/^(0|[1-9]\d{0,11})$/.test(timestamp)) {
    throw failure(
      'timestamp_malformed',
      'The header webhook-timestamp is no number of seconds since 1970: what sends this is not ours.',
    );
  }
  const ageS = nowS - Number(timestamp);
  if (ageS > toleranceS) {
    throw failure(
      'too_old',
      `It was sent ${ageS} s ago, and ${toleranceS} s are allowed: somebody plays it again, or the ` +
        'clock of this machine is ahead: let NTP set it.',
    );
  }
  if (-ageS > toleranceS) {
    throw failure(
      'too_new',
      `It is sent ${-ageS} s from now, and ${toleranceS} s are allowed: the clock of this machine is ` +
        'behind: let NTP set it.',
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

/** In constant time: every character is compared, wherever the first difference is. */
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
    'It is signed, but no event: {"type", "timestamp", "data"} is expected. Does another service ' +
      'sign with this secret?',
  );
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function failure(code: WebhookVerificationCode, message: string): WebhookVerificationError {
  return new WebhookVerificationError(code, message);
}
