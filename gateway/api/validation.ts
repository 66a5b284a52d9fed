import type { FastifySchemaCompiler, FastifySchemaValidationError } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Value } from 'typebox/value';

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
    const value = httpPart === 'body' ? input : Value.Convert(schema, input);
    if (checked.Check(value)) return { value };
    const faults = faultsOf(checked.Errors(value));
    return { error: Object.assign(new Error('refused'), { validation: faults }) as never };
  };
};

type SchemaError = Pick<FastifySchemaValidationError, 'keyword' | 'instancePath' | 'message'> & {
  readonly params: object;
};

function faultsOf(errors: readonly SchemaError[]): InputFault[] {
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
    } else add(faults, instancePath, codeOf(keyword), `${message}.`);
  }
  return [...faults.values()].slice(0, FAULTS_MAX);
}

function add(faults: Map<string, InputFault>, at: string, code: string, detail: string): void {
  const pointer = `#${at.slice(0, 128).toWellFormed()}`;
  if (!faults.has(pointer)) faults.set(pointer, { pointer, code, detail });
}

/** Schema keywords as codes of ours: `minLength` → `min_length`. */
function codeOf(keyword: string): string {
  return keyword.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
