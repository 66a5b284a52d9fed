import { createHash, timingSafeEqual } from 'node:crypto';
import { type InnerList, parseDictionary } from 'structured-headers';
import { isSchemeId } from '../access/scheme-rows.ts';
import { type Checked, malformed } from './check.ts';

export const SIGNATURE_LIMITS = {
  /** Age of a signature by `created`, and how far `created` may be ahead of our clock. */
  ageMaxS: 60,
  aheadMaxS: 10,
  componentsMax: 16,
  nonceCharsMin: 16,
  nonceCharsMax: 128,
} as const;

/** A request as a signature covers it. */
export interface SignedMessage {
  readonly method: string;
  /** Public address of the service and path with query, as the client sent them. */
  readonly url: string;
  /** Names in lower case; repeated headers are repeated, in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly hasBody: boolean;
}

/** A signature whose form is right; nothing is verified yet. */
export interface SignatureInput {
  readonly schemeId: string;
  readonly nonce: string;
  readonly algorithm: string | undefined;
  /** Digests that the body must have, by algorithm; undefined = no body is covered. */
  readonly digests: ReadonlyMap<string, Buffer> | undefined;
}

const REQUIRED = ['@method', '@target-uri'] as const;
const DERIVED: ReadonlySet<string> = new Set([
  ...['@method', '@target-uri', '@authority', '@scheme', '@path', '@query'],
]);
const PARAMETERS: ReadonlySet<string> = new Set([
  ...['created', 'expires', 'keyid', 'nonce', 'alg', 'tag'],
]);
/** Algorithms of Content-Digest, and their names in node:crypto. */
const DIGESTS: ReadonlyMap<string, string> = new Map([
  ['sha-256', 'sha256'],
  ['sha-512', 'sha512'],
]);
const EXAMPLE = 'sig1=("@method" "@target-uri");created=1732500000;keyid="aut_…";nonce="…"';

/**
 * Reads the only signature of a request and demands what RFC 9421 leaves to applications: one label,
 * the method, the whole target, the digest of a body, and a fresh time, key and nonce.
 * @param nowMs Unix ms
 */
export function readSignatureInput(message: SignedMessage, nowMs: number): Checked<SignatureInput> {
  const [inputs, signatures] = [
    valuesOf(message, 'signature-input'),
    valuesOf(message, 'signature'),
  ];
  if (inputs.length !== 1 || signatures.length !== 1) {
    return malformed('headers', 'Send exactly one Signature-Input and one Signature header.');
  }
  const input = dictionaryOf(inputs[0]!);
  const signature = dictionaryOf(signatures[0]!);
  if (input === undefined || signature === undefined) {
    return malformed('headers', 'Signature-Input and Signature must be dictionaries of RFC 8941.');
  }
  const [label] = input.keys();
  const isOne = input.size === 1 && signature.size === 1 && label !== undefined;
  if (!isOne || !signature.has(label) || countLabels(inputs[0]!, label) !== 1) {
    return malformed(
      'headers',
      'Send exactly one signature, under the same label in both headers.',
    );
  }
  const list = input.get(label)!;
  if (!Array.isArray(list[0]) || !(signature.get(label)![0] instanceof ArrayBuffer)) {
    const detail = `Signature-Input must have the form ${EXAMPLE}, and Signature sig1=:<base64>:.`;
    return malformed('headers', detail);
  }
  const covered = readComponents(list as InnerList, message);
  if (!covered.ok) return covered;
  const parameters = readParameters((list as InnerList)[1], nowMs);
  if (!parameters.ok) return parameters;
  return { ok: true, value: { ...parameters.value, digests: covered.value } };
}

function readComponents(
  [items]: InnerList,
  message: SignedMessage,
): Checked<SignatureInput['digests']> {
  const names = items.map(([name]) => name);
  if (items.length > SIGNATURE_LIMITS.componentsMax) {
    const detail = `A signature may cover at most ${SIGNATURE_LIMITS.componentsMax} components.`;
    return malformed('components', detail);
  }
  for (const [name, parameters] of items) {
    if (typeof name !== 'string' || name !== name.toLowerCase() || parameters.size > 0) {
      const detail = 'Components must be names in lower case, without parameters such as ;req.';
      return malformed('components', detail);
    }
    if (name.startsWith('@') ? !DERIVED.has(name) : valuesOf(message, name).length === 0) {
      return malformed('components', 'A covered component is not part of the request.');
    }
  }
  if (new Set(names).size !== names.length) {
    return malformed('components', 'A component is covered twice.');
  }
  const needed = message.hasBody ? [...REQUIRED, 'content-digest'] : REQUIRED;
  const missing = needed.filter((name) => !names.includes(name));
  if (missing.length > 0) {
    return malformed('components', `The signature must also cover ${missing.join(', ')}.`);
  }
  return names.includes('content-digest')
    ? readDigests(valuesOf(message, 'content-digest'))
    : { ok: true, value: undefined };
}

function readDigests(values: readonly string[]): Checked<SignatureInput['digests']> {
  const dictionary = values.length === 1 ? dictionaryOf(values[0]!) : undefined;
  const digests = new Map<string, Buffer>();
  for (const [name, [value]] of dictionary ?? []) {
    const algorithm = DIGESTS.get(name);
    if (algorithm !== undefined && value instanceof ArrayBuffer) {
      digests.set(algorithm, Buffer.from(value));
    }
  }
  if (digests.size > 0) return { ok: true, value: digests };
  return malformed('content_digest', 'Content-Digest must have the form sha-256=:<base64>:.');
}

function readParameters(
  parameters: InnerList[1],
  nowMs: number,
): Checked<Omit<SignatureInput, 'digests'>> {
  const unknown = [...parameters.keys()].filter((name) => !PARAMETERS.has(name));
  if (unknown.length > 0) {
    return malformed('parameters', `Use only the parameters ${[...PARAMETERS].join(', ')}.`);
  }
  const [created, expires] = [parameters.get('created'), parameters.get('expires')];
  const [schemeId, nonce] = [parameters.get('keyid'), parameters.get('nonce')];
  const algorithm = parameters.get('alg');
  if (typeof schemeId !== 'string' || !isSchemeId(schemeId)) {
    return malformed('parameters', 'keyid must be the id of the scheme, aut_ and 12 characters.');
  }
  const { nonceCharsMin, nonceCharsMax } = SIGNATURE_LIMITS;
  const isNonce = typeof nonce === 'string' && nonce.length >= nonceCharsMin;
  if (!isNonce || nonce.length > nonceCharsMax) {
    const detail = `nonce must be a new random text of ${nonceCharsMin} to ${nonceCharsMax} characters.`;
    return malformed('parameters', detail);
  }
  if (algorithm !== undefined && typeof algorithm !== 'string') {
    return malformed('parameters', 'alg must be a text such as "ed25519", or be left out.');
  }
  const late = lateness(created, expires, Math.floor(nowMs / 1_000));
  if (late !== undefined) return malformed('created', late);
  return { ok: true, value: { schemeId, nonce, algorithm } };
}

/** @param nowS Unix s */
function lateness(created: unknown, expires: unknown, nowS: number): string | undefined {
  const { ageMaxS, aheadMaxS } = SIGNATURE_LIMITS;
  if (!Number.isInteger(created)) return 'created must be the present time in whole Unix seconds.';
  const ageS = nowS - (created as number);
  if (ageS > ageMaxS) {
    return `created is ${ageS} s ago; at most ${ageMaxS} s are allowed. Sign each request again.`;
  }
  if (ageS < -aheadMaxS) {
    return `created is ${-ageS} s ahead of our clock; at most ${aheadMaxS} s are allowed. Set the clock.`;
  }
  if (expires === undefined) return undefined;
  if (!Number.isInteger(expires)) return 'expires must be whole Unix seconds.';
  return nowS >= (expires as number) ? 'expires has passed. Sign each request again.' : undefined;
}

/** Whether a body has all digests that were signed. @param digests by algorithm */
export function hasDigests(body: Buffer, digests: ReadonlyMap<string, Buffer>): boolean {
  for (const [algorithm, wanted] of digests) {
    const own = createHash(algorithm).update(body).digest();
    if (own.length !== wanted.length || !timingSafeEqual(own, wanted)) return false;
  }
  return true;
}

function valuesOf({ headers }: SignedMessage, wanted: string): string[] {
  return headers.flatMap(([name, value]) => (name === wanted ? [value] : []));
}

function dictionaryOf(text: string): ReturnType<typeof parseDictionary> | undefined {
  try {
    return parseDictionary(text);
  } catch {
    return undefined;
  }
}

/** RFC 8941 lets the last of equal labels win; a parser in front might take the first. */
function countLabels(text: string, label: string): number {
  const outsideStrings = text.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  return outsideStrings
    .split(/[,;()\s]+/)
    .filter((part) => part === `${label}=` || part.startsWith(`${label}=`)).length;
}
