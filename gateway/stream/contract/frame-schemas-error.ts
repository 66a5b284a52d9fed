import { Type } from 'typebox';
import { CLOSE_CODES } from './close-codes.ts';
import { ERROR_CODES, type ErrorName } from './error-codes.ts';
import {
  CountSchema,
  closed,
  Id,
  Millis,
  oneOf,
  PositionSchema,
  TimeSchema,
} from './frame-schemas-pill.ts';

const ERRORS = Object.keys(ERROR_CODES) as ErrorName[];
const isFatal = (name: ErrorName) => 'close' in ERROR_CODES[name];

const Session = Type.Object(
  {
    session: Type.String(),
    since: TimeSchema,
    address: Type.String(),
    key: Type.String({ description: 'Its first and last letters.' }),
    queue_ms: Millis,
  },
  closed,
);

/** `error`: of two forms, so that a client knows from `fatal` alone whether the connection ends. */
export const ErrorSchema = Type.Union([
  Type.Object(
    {
      type: Type.Literal('error'),
      id: Id,
      code: oneOf(ERRORS.filter((name) => !isFatal(name))),
      message: Type.String({ description: 'For people; programs read `code`.' }),
      fatal: Type.Literal(false),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('error'),
      id: Id,
      code: oneOf(ERRORS.filter(isFatal)),
      message: Type.String({ description: 'For people; programs read `code`.' }),
      fatal: Type.Literal(true),
      close: Type.Union(
        Object.values(CLOSE_CODES).map(({ code }) => Type.Literal(code)),
        { description: 'The connection ends with this close code.' },
      ),
      retry_after_ms: Type.Optional(Millis),
      position: Type.Optional(
        Type.Union([PositionSchema, Type.Null()], {
          description: 'To resume from; null = begin anew.',
        }),
      ),
      limit: Type.Optional(CountSchema('Connections that may be open.')),
      sessions: Type.Optional(Type.Array(Session, { description: 'Those that are open.' })),
      tier: Type.Optional(Type.String({ description: 'That the account has.' })),
      needs: Type.Optional(Type.String({ description: 'The cheapest tier that has streams.' })),
    },
    closed,
  ),
]);
