import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { SERVER_FRAME_SCHEMAS } from '../protocol/server-frame-schemas.ts';

const CHECKS = new Map(
  Object.entries(SERVER_FRAME_SCHEMAS).map(([type, schema]) => [type, Compile(schema as TSchema)]),
);

/** How a server frame violates its schema; undefined if it does not. */
export function faultOfFrame(frame: unknown): string | undefined {
  const { type } = frame as { readonly type?: string };
  const check = CHECKS.get(type ?? '');
  if (check === undefined) return `No frame is of type ${type}: ${JSON.stringify(frame)}`;
  if (check.Check(frame)) return undefined;
  return `${JSON.stringify(check.Errors(frame)).slice(0, 600)} in ${JSON.stringify(frame)}`;
}
