import { Type } from 'typebox';
import { SYMBOL_PATTERN } from '../../../schemas/pill.ts';

/** Parameters that several questions have. */
export const SYMBOL = Type.String({ pattern: SYMBOL_PATTERN, description: 'Of this symbol' });

export const SYMBOL_OR_ALL = Type.Optional(
  Type.String({
    pattern: `^(\\*|${SYMBOL_PATTERN.slice(1, -1)})$`,
    description: 'Of this symbol; `*`, which is the default, of all but test symbols',
  }),
);

export const WINDOW = {
  from: Type.Optional(
    Type.String({ description: 'First time of it, ISO 8601 in UTC, e.g. 2026-11-20T00:00:00Z' }),
  ),
  to: Type.Optional(Type.String({ description: 'End of it, not included; now by default' })),
} as const;

export const WindowSchema = Type.Object({ from: Type.String(), to: Type.String() });
export const WINDOW_EXAMPLE = {
  from: '2026-11-20T00:00:00.000000Z',
  to: '2026-11-20T06:30:00.000000Z',
} as const;

/** A whole number with its bounds and default. */
export function whole(minimum: number, maximum: number, byDefault: number, what: string) {
  const description = `${what}; ${byDefault} by default`;
  return Type.Optional(Type.Integer({ minimum, maximum, default: byDefault, description }));
}
