import { Compile } from 'typebox/compile';
import { parseStrictJson } from '../../../lib/json/strict-json.ts';
import { isRangeBackwards, type PillFilter } from '../../../schemas/pill-filter.ts';
import { type Position, parsePosition } from '../../../schemas/position.ts';
import { type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import { LIMITS } from '../limits.ts';
import { type CheckedFrame, CLIENT_FRAMES, type ClientOp } from './client-frame-schemas.ts';
import {
  FaultError,
  type FrameFault,
  nameOf,
  POSITION_MALFORMED,
  quote,
  schemaFault,
  tooLong,
} from './frame-fault.ts';
import { ALL_SYMBOLS, type Mode } from './subscription.ts';

/** The position or time that a client resumes from. */
export type ResumeRequest =
  | { readonly kind: 'position'; readonly position: Position }
  | { readonly kind: 'since'; readonly since: Micros };

/** A `subscribe` frame with its defaults; `symbols` are distinct, and some may be malformed. */
export interface SubscribeFrame extends Pick<CheckedFrame<'subscribe'>, 'op' | 'id' | 'symbols'> {
  readonly mode: Mode;
  readonly snapshot: boolean;
  readonly backfill: boolean;
  readonly resume: ResumeRequest | undefined;
  readonly filter: PillFilter | undefined;
}

export type ClientFrame = SubscribeFrame | CheckedFrame<Exclude<ClientOp, 'subscribe'>>;

type Fields = Readonly<Record<string, unknown>>;

const OPS = Object.keys(CLIENT_FRAMES) as ClientOp[];
const CHECKS = new Map(OPS.map((op) => [op as string, Compile(CLIENT_FRAMES[op].schema)]));

/**
 * Parses one client frame by the schema that documents it. Never throws, whatever the bytes.
 * @returns the frame, or its first fault with a message that says what to send instead
 */
export function parseClientFrame(
  bytes: Buffer,
):
  | { readonly ok: true; readonly frame: ClientFrame }
  | { readonly ok: false; readonly fault: FrameFault } {
  const json = parseStrictJson(bytes);
  if (!json.ok) {
    const { pointer, detail } = json.faults[0]!;
    const message = pointer === '#' ? detail : `${pointer}: ${detail}`;
    return { ok: false, fault: { id: undefined, code: 'json_malformed', message } };
  }
  const { value } = json;
  if (!isObject(value)) {
    const message = `A frame is a JSON object such as {"op":"ping"}, not ${nameOf(value)}.`;
    return { ok: false, fault: { id: undefined, code: 'json_malformed', message } };
  }
  try {
    return { ok: true, frame: readFrame(value) };
  } catch (error) {
    if (!(error instanceof FaultError)) throw error;
    const { code, message } = error;
    const id =
      typeof value.id === 'string' ? value.id.slice(0, LIMITS.frameIdLengthMax) : undefined;
    return { ok: false, fault: { id, code, message } };
  }
}

function readFrame(fields: Fields): ClientFrame {
  const { op, id } = fields;
  const check = CHECKS.get(op as string);
  if (check === undefined) throw opFault(op);
  if (!check.Check(fields)) throw schemaFault(op as ClientOp, fields, check.Errors(fields));
  // TypeBox counts graphemes: a letter with a thousand accents would pass `maxLength`.
  const idMax = LIMITS.frameIdLengthMax;
  if (typeof id === 'string' && id.length > idMax) throw tooLong('id', id, idMax);
  const frame = fields as unknown as CheckedFrame;
  if (frame.op === 'subscribe') return readSubscribe(frame);
  return frame.op === 'unsubscribe' ? { ...frame, symbols: distinct(frame.symbols) } : frame;
}

function opFault(op: unknown): FaultError {
  const known = OPS.join(', ');
  if (op === undefined) return new FaultError('missing_field', `No "op". Known: ${known}.`);
  if (typeof op !== 'string') {
    return new FaultError('wrong_type', `"op" is a string, not ${nameOf(op)}.`);
  }
  return new FaultError('unknown_op', `No op "${quote(op)}". Known: ${known}.`);
}

function readSubscribe(frame: CheckedFrame<'subscribe'>): SubscribeFrame {
  return {
    mode: 'all',
    snapshot: true,
    backfill: false,
    ...frame,
    symbols: distinct(frame.symbols),
    resume: readResume(frame.resume),
    filter: readFilter(frame.filter),
  };
}

function distinct(symbols: readonly string[]): string[] {
  const all = [...new Set(symbols)];
  if (all.length === 1 || !all.includes(ALL_SYMBOLS)) return all;
  throw new FaultError(
    'out_of_range',
    '"symbols": send "*" alone, and further symbols in another frame.',
  );
}

function readResume(resume: CheckedFrame<'subscribe'>['resume']): ResumeRequest | undefined {
  if (resume === undefined || resume === null) return undefined;
  if (typeof resume === 'string') {
    // The schema checks only the form: a partition may occur twice, or a number may be too large.
    const position = parsePosition(resume);
    if (position !== undefined) return { kind: 'position', position };
    throw new FaultError('position_malformed', POSITION_MALFORMED);
  }
  const since = parseTimestamp(resume.since);
  if (since.ok) return { kind: 'since', since: since.micros };
  throw new FaultError('position_malformed', `"since": ${since.detail}`);
}

function readFilter(filter: CheckedFrame<'subscribe'>['filter']): PillFilter | undefined {
  if (filter === undefined || filter === null || Object.keys(filter).length === 0) return undefined;
  const { min_confidence: minConfidence, min_spread: minSpread, max_spread: maxSpread } = filter;
  if (isRangeBackwards({ minSpread, maxSpread })) {
    throw new FaultError('out_of_range', '"filter" min_spread is above max_spread.');
  }
  return { minConfidence, minSpread, maxSpread, states: filter.states ?? [] };
}

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
