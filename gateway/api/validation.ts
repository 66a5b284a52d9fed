import type { FastifySchemaCompiler, FastifySchemaValidationError } from 'fastify';
import type { TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

/** Faults told of one request. */
const FAULTS_MAX = 20;

/** What is wrong with one parameter or one member of a body. */
export interface InputFault {
  readonly pointer: string;
  readonly code: string;
  readonly detail: string;
}

/**
 * Checks parameters and bodies by their TypeBox schemas. Parameters are text: numbers and booleans
 * are converted first, a value that is none stays as it is and is refused.
 */
export const compileSchema: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const checked = Compile(schema);
  return (input: unknown) => {
    const value = httpPart === 'body' ? input : readParameters(schema as TObject, input);
    const tooLong = overlong(schema as TObject, value);
    if (checked.Check(value) && tooLong.length === 0) return { value };
    const told = faultsOf(checked.Errors(value), schema as TObject);
    const more = tooLong.filter(({ pointer }) => told.every((fault) => fault.pointer !== pointer));
    const faults = [...told, ...more].slice(0, FAULTS_MAX);
    return { error: Object.assign(new Error('refused'), { validation: faults }) as never };
  };
};

/**
 * Strings with more code points than allowed, as JSON Schema counts. TypeBox counts what the eye
 * sees as one character: a letter with a thousand accents would be of length 1.
 */
function overlong({ properties = {} }: TObject, value: unknown): InputFault[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, text]) => {
    const { maxLength = Number.POSITIVE_INFINITY } = (properties[name] ?? {}) as StringSchema;
    if (typeof text !== 'string' || text.length <= maxLength) return [];
    if ([...text].length <= maxLength) return [];
    const detail = `must not have more than ${maxLength} characters.`;
    return [{ pointer: `#/${name}`, code: 'max_length', detail }];
  });
}

interface StringSchema {
  readonly maxLength?: number;
}

/**
 * Parameters as their schemas want them. Only what is written as a number is one: TypeBox's own
 * conversion takes `true` for 1.
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

type SchemaError = Pick<FastifySchemaValidationError, 'keyword' | 'instancePath' | 'message'> & {
  readonly params: object;
};

function faultsOf(errors: readonly SchemaError[], { properties = {} }: TObject): InputFault[] {
  const faults = new Map<string, InputFault>();
  for (const { keyword, instancePath, message = '', params } of errors) {
    // An unknown member is told by the schema `false` at its own place as well.
    if (message === 'schema is false') continue;
    const { additionalProperties, requiredProperties } = params as Record<string, string[]>;
    if (keyword === 'additionalProperties') {
      for (const name of additionalProperties ?? []) {
        add(faults, `${instancePath}/${name}`, 'unknown', 'Not known here.');
      }
    } else if (keyword === 'required') {
      for (const name of requiredProperties ?? []) {
        add(faults, `${instancePath}/${name}`, 'missing', 'It is required.');
      }
    } else if (keyword === 'pattern') {
      // What a pattern is for is clearer than the pattern.
      const { description } = (properties[instancePath.slice(1)] ?? {}) as { description?: string };
      add(faults, instancePath, 'pattern', `${description ?? message}.`);
    } else add(faults, instancePath, codeOf(keyword), `${message}.`);
  }
  return [...faults.values()];
}

function add(faults: Map<string, InputFault>, at: string, code: string, detail: string): void {
  const pointer = `#${at.slice(0, 128).toWellFormed()}`;
  if (!faults.has(pointer)) faults.set(pointer, { pointer, code, detail });
}

/** Schema keywords as codes of ours: `minLength` → `min_length`. */
function codeOf(keyword: string): string {
  return keyword.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
