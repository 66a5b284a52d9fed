import type { FieldCode } from '../../schemas/fault.ts';

/** A fault in one parameter of a query or path: an entry of `errors`. */
export interface ParameterFault {
  readonly parameter: string;
  readonly code: FieldCode;
  /** One sentence that says how to correct the value. */
  readonly detail: string;
}
