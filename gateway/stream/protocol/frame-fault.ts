import type { TLocalizedValidationError } from 'typebox/error';
import { CLIENT_FRAMES, type ClientOp, FIELD_FORMS } from './client-frame-schemas.ts';
import type { ErrorName } from './error-codes.ts';
import type { Shape } from './frame-parts.ts';

/** The fault of a client frame; the connection stays open. */
export interface FrameFault {
  readonly id: string | undefined;
  readonly code: ErrorName;
  readonly message: string;
}

/** The first fault of a frame, thrown and caught while the frame is parsed. */
export class FaultError extends Error {
  readonly code: ErrorName;
  constructor(code: ErrorName, message: string) {
    super(message);
    this.code = code;
  }
}

export const POSITION_MALFORMED =
  '"resume" is a position from a server frame: "<epoch>:<partition>-<offset>,…".';

const QUOTED_CHARS_MAX = 64;

/** Shortens a name or value of the client, and makes it well-formed Unicode, to send it back. */
export function quote(text: string): string {
  return text.slice(0, QUOTED_CHARS_MAX).toWellFormed();
}

export function nameOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'string') return `"${quote(value)}"`;
  return typeof value === 'object' ? 'an object' : String(value);
}

/** Turns the errors of an op's schema into the code and message of the first fault. */
export function schemaFault(
  op: ClientOp,
  frame: object,
  errors: readonly TLocalizedValidationError[],
): FaultError {
  const { keyword, instancePath, params } = firstOf(errors);
  const path = instancePath.split('/').slice(1).map(unescapePointer);
  if (keyword === 'boolean') return unknownField(op, path);
  const schema = path.reduce(stepInto, CLIENT_FRAMES[op].schema as Shape);
  if (keyword === 'required') {
    const [field = ''] = (params as { requiredProperties?: string[] }).requiredProperties ?? [];
    const form = formOf([...path, field], propertiesOf(schema)[field]!);
    return path.length === 0
      ? new FaultError('missing_field', `No "${field}": send ${form}.`)
      : new FaultError('wrong_type', `"${field}" is ${form}, not undefined.`);
  }
  if (keyword === 'pattern') return new FaultError('position_malformed', POSITION_MALFORMED);
  const name = path.findLast((step) => !INDEX.test(step))!;
  const value = path.reduce((at, step) => (at as Record<string, unknown>)[step], frame as unknown);
  if (keyword === 'minItems' || keyword === 'maxItems') {
    const { minItems, maxItems } = schema;
    const bounds = `${minItems} to ${maxItems?.toLocaleString('en-US')}`;
    const { length } = value as unknown[];
    return new FaultError('out_of_range', `"${name}" holds ${length}; send ${bounds}.`);
  }
  if (keyword === 'maxLength') return tooLong(name, value as string, schema.maxLength!);
  // The value is not repeated, because it may be part of a key.
  if (name === 'key') return new FaultError('wrong_type', '"key" is a string.');
  return new FaultError(
    'wrong_type',
    `"${name}" is ${formOf(path, schema)}, not ${nameOf(value)}.`,
  );
}

export function tooLong(name: string, { length }: string, max: number): FaultError {
  return new FaultError('out_of_range', `"${name}" has ${length} characters; the limit is ${max}.`);
}

function unknownField(op: ClientOp, path: readonly string[]): FaultError {
  const parent = path.slice(0, -1);
  const schema = parent.reduce(stepInto, CLIENT_FRAMES[op].schema as Shape);
  const name = parent.at(-1) ?? op;
  const known = Object.keys(propertiesOf(schema)).join(', ');
  const message = `"${name}" has no field "${quote(path.at(-1)!)}". Known: ${known}.`;
  return new FaultError('unknown_field', message);
}

/**
 * Selects the error to report: a missing or unknown field of the frame, otherwise the first field
 * with an error. A union reports the errors of all its forms. Those of the form that the client
 * meant are nested deeper, or are not errors of type.
 */
function firstOf(errors: readonly TLocalizedValidationError[]): TLocalizedValidationError {
  const own = errors.filter(({ keyword }) => keyword !== 'anyOf');
  const ofFrame = own.find(
    ({ keyword, instancePath }) =>
      instancePath === '' || (keyword === 'boolean' && instancePath.lastIndexOf('/') === 0),
  );
  if (ofFrame !== undefined) return ofFrame;
  const [, field] = own[0]!.instancePath.split('/');
  const ofField = own.filter(({ instancePath }) => instancePath.split('/')[1] === field);
  return ofField.toSorted((a, b) => weightOf(b) - weightOf(a))[0]!;
}

function weightOf({ keyword, instancePath }: TLocalizedValidationError): number {
  if (keyword === 'boolean') return 3;
  if (keyword !== 'type' && keyword !== 'const') return 2;
  return instancePath.lastIndexOf('/') > 0 ? 1 : 0;
}

const INDEX = /^\d+$/;

/** Undoes the escapes of a JSON pointer (RFC 6901 section 4). */
const unescapePointer = (step: string) => step.replaceAll('~1', '/').replaceAll('~0', '~');

const formsOf = (shape: Shape): readonly Shape[] => shape.anyOf ?? [shape];

const propertiesOf = (shape: Shape): Readonly<Record<string, Shape>> =>
  Object.assign({}, ...formsOf(shape).map(({ properties }) => properties));

const stepInto = (shape: Shape, step: string): Shape =>
  INDEX.test(step) ? (shape.items ?? {}) : (propertiesOf(shape)[step] ?? {});

const TYPE_FORMS: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  number: 'a number',
  object: 'an object',
  string: 'a string',
};

/** The form of a field, in words. */
function formOf(path: readonly string[], shape: Shape): string {
  const known = FIELD_FORMS[path.map((step) => (INDEX.test(step) ? '*' : step)).join('/')];
  if (known !== undefined) return known;
  const forms = formsOf(shape).filter(({ type }) => type !== 'null');
  return forms
    .map(({ const: value, type = '' }) =>
      value === undefined ? (TYPE_FORMS[type] ?? type) : JSON.stringify(value),
    )
    .join(' or ');
}
