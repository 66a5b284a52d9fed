import { Type } from 'typebox';

/** A pill as REST answers carry it. */
export const PillSchema = Type.Object({
  cursor: Type.String({ description: 'Where it is in the log: <partition>-<offset>' }),
  prev: Type.Union([Type.String(), Type.Null()], {
    description: 'Cursor of the previous live pill of the symbol',
  }),
  id: Type.String(),
  timestamp: Type.String({ description: 'Of the sender, UTC, microseconds' }),
  symbol: Type.String(),
  gross_spread_percent: Type.Number(),
  market_state: Type.String(),
  confidence: Type.Number({ minimum: 0 }),
  received_at: Type.String({ description: 'When it reached us, UTC, microseconds' }),
  backfill: Type.Optional(
    Type.Literal(true, {
      description: 'Received more than the backfill age (60 s by default) after its timestamp',
    }),
  ),
});

export const PositionSchema = Type.String({
  description: 'All pills up to and including these cursors are in the answer',
});

export const PILL_EXAMPLE = {
  cursor: '3-132',
  prev: '3-131',
  id: 'p-10',
  timestamp: '2026-11-20T01:02:03.004000Z',
  symbol: '7203.T',
  gross_spread_percent: 0.1261,
  market_state: 'open',
  confidence: 0.88,
  received_at: '2026-11-20T01:02:03.011000Z',
};

export const POSITION_EXAMPLE = 'k7f3:0-95,3-140';
