import type { FastifySchemaCompiler } from 'fastify';
import type { TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { FieldCode } from '../../../schemas/fault.ts';
import { numberHint } from '../../../schemas/number-hint.ts';
import { explanationOf } from './form.ts';
import { bodyFault } from './json-body.ts';
import { parameterFault } from './parameters.ts';
import { type AnySchema, partOf, ruleOf, withoutNull } from './schema-rule.ts';

/** Faults reported of one request. */
const FAULTS_MAX = 20;

/** A fault at a path of the input, `/days` or `/headers/x-a`; empty for the input as a whole. */
interface PathFault {
  readonly path: string;
  readonly code: FieldCode;
  readonly detail: string;
}

interface Input {
  readonly schema: AnySchema;
  readonly value: unknown;
  readonly isBody: boolean;
}

/**
 * Checks parameters and bodies by their TypeBox schemas. Parameters are text: numbers and booleans
 * are converted first; a value that cannot be converted stays text and is refused. The same fault
 * has the same code and words on every route.
 */
export const compileSchema: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const checked = Compile(schema);
  const isBody = httpPart === 'body';
  return (given: unknown) => {
    const value = isBody ? given : readParameters(schema as TObject, given);
    const input = { schema: schema as AnySchema, value, isBody };
    const tooLong = overlong(input);
    if (checked.Check(value) && tooLong.length === 0) return { value };
    const found = faultsOf(checked.Errors(value), input);
    const more = tooLong.filter(({ path }) => found.every((known) => known.path !== path));
    const validation = [...found, ...more]
      .slice(0, FAULTS_MAX)
      .map(({ path, code, detail }) =>
        isBody ? bodyFault(path, code, detail) : parameterFault(path.slice(1), code, detail),
      );
    return { error: Object.assign(new Error('refused'), { validation }) as never };
  };
};

/**
 * Strings with more code points than allowed, as JSON Schema counts. TypeBox counts grapheme
 * clusters: a letter with a thousand accents would have length 1.
 */
function overlong({ schema: { properties = {} }, value }: Input): PathFault[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, text]) => {
    const schema = withoutNull(properties[name] ?? {});
    const { maxLength = Number.POSITIVE_INFINITY } = schema;
    if (typeof text !== 'string' || text.length <= maxLength) return [];
    if ([...text].length <= maxLength) return [];
    return [{ path: `/${name}`, code: 'too_long', detail: `\`${name}\` ${ruleOf(schema)}.` }];
  });
}

/**
 * Converts parameters to the types of their schemas. Only text in number form becomes a number:
 * TypeBox's own conversion turns `true` into 1.
 */
function readParameters({ properties = {} }: TObject, input: unknown): unknown {
  const entries = Object.entries(input as Readonly<Record<string, unknown>>);
  return Object.fromEntries(
    entries.map(([name, value]) => {
      const { type } = (properties[name] ?? {}) as { type?: string };
      if (typeof value !== 'string') return [name, value];
      if (type === 'integer' && /^-?(0|[1-9]\d{0,15})$/.test(value)) return [name, Number(value)];
      if (type === 'number' && /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(value)) {
        return [name, Number(value)];
      }
      if (type === 'boolean' && /^(true|false)$/.test(value)) return [name, value === 'true'];
      return [name, value];
    }),
  );
}

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message?: string;
  readonly params: object;
}

/** The errors of TypeBox as faults, one for each path. */
function faultsOf(errors: readonly SchemaError[], input: Input): PathFault[] {
  const faults = new Map<string, PathFault>();
  for (const error of errors) {
    // The schema `false` reports an unknown member a second time, at the member's own path. A union
    // reports its parts first.
    if (error.message === 'schema is false') continue;
    for (const fault of faultsOfError(error, input)) {
      if (!faults.has(fault.path)) faults.set(fault.path, fault);
    }
  }
  return [...faults.values()];
}

function faultsOfError({ keyword, instancePath: path, params }: SchemaError, input: Input) {
  const { schema, value, isBody } = input;
  const at = partOf(schema, value, path);
  const { additionalProperties = [], requiredProperties = [] } = params as Record<string, string[]>;
  if (keyword === 'additionalProperties') {
    const known = Object.keys(at.schema.properties ?? {}).join(', ');
    const code = isBody ? 'unknown_field' : 'parameter_unknown';
    const detail = known === '' ? 'Nothing is known here.' : `Unknown here. Known: ${known}.`;
    return additionalProperties.map(
      (name): PathFault => ({ path: `${path}/${name}`, code, detail }),
    );
  }
  if (keyword === 'required') {
    const code = isBody ? 'missing_field' : 'missing';
    return requiredProperties.map((name): PathFault => {
      return { path: `${path}/${name}`, code, detail: `\`${name}\` is required.` };
    });
  }
  return [{ path, ...faultOfValue(keyword, path, at, isBody) }];
}

/** Codes of keywords that need no look at the value. */
const CODES: Readonly<Record<string, FieldCode>> = {
  minimum: 'out_of_range',
  maximum: 'out_of_range',
  exclusiveMinimum: 'out_of_range',
  exclusiveMaximum: 'out_of_range',
  enum: 'not_a_choice',
  const: 'not_a_choice',
  minLength: 'too_short',
  maxLength: 'too_long',
  minItems: 'too_few',
  maxItems: 'too_many',
  uniqueItems: 'repeated',
  minProperties: 'nothing_to_change',
  maxProperties: 'too_many',
};

const TYPES: Readonly<Record<string, FieldCode>> = {
  string: 'not_a_string',
  number: 'not_a_number',
  integer: 'not_an_integer',
  boolean: 'not_a_boolean',
  array: 'not_an_array',
  object: 'not_an_object',
};

function faultOfValue(
  keyword: string,
  path: string,
  { schema: part, value }: { readonly schema: AnySchema; readonly value: unknown },
  isBody: boolean,
): Omit<PathFault, 'path'> {
  const schema = withoutNull(part);
  if (!isBody && Array.isArray(value)) {
    return { code: 'parameter_repeated', detail: 'Give this parameter only once.' };
  }
  if (typeof value === 'string' && schema.pattern !== undefined) {
    const [code, detail] = explanationOf(schema.pattern, value) ?? [];
    if (code !== undefined && detail !== undefined) return { code, detail };
  }
  const { type = '' } = schema;
  const code = CODES[keyword] ?? (keyword === 'pattern' ? 'malformed' : TYPES[type]);
  const isNumber = type === 'number' || type === 'integer';
  const hint = isNumber && code !== 'out_of_range' ? numberHint(value, isBody) : '';
  const subject = path === '' ? 'The body' : `\`${path.slice(1, 65).toWellFormed()}\``;
  return { code: code ?? 'malformed', detail: `${subject} ${ruleOf(part)}.${hint}` };
}
