import type { FastifyRequest } from 'fastify';
import type { FieldCode } from '../../../schemas/fault.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: readonly ParameterFault[] };

/** The query as sent; a repeated parameter occurs repeatedly. */
export function queryOf({ url }: FastifyRequest): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
}

export type AddFault = (...fault: Parameters<typeof parameterFault>) => void;

/** Refuses a query for one fault. */
export function refused(...fault: Parameters<typeof parameterFault>) {
  return { ok: false, faults: [parameterFault(...fault)] } as const;
}

/** Makes the fault of a parameter. The name may be the client's own, so it is cut. */
export function parameterFault(parameter: string, code: FieldCode, detail: string): ParameterFault {
  return { parameter: parameter.slice(0, 64).toWellFormed(), code, detail };
}
