import { Type } from 'typebox';
import { PILL_FIELDS } from '../../../schemas/pill-fields.ts';

/** A pill as REST answers carry it. */
export const PillSchema = Type.Object({
  cursor: Type.String({ description: 'Its place in the log: <partition>-<offset>' }),
  prev: Type.Union([Type.String(), Type.Null()], {
    description: 'Cursor of the previous live pill of the symbol',
  }),
  id: PILL_FIELDS.id,
  timestamp: Type.String({ description: 'Time given by the sender, UTC, microseconds' }),
  symbol: PILL_FIELDS.symbol,
  gross_spread_percent: PILL_FIELDS.gross_spread_percent,
  market_state: PILL_FIELDS.market_state,
  confidence: PILL_FIELDS.confidence,
  received_at: Type.String({ description: 'Time of receipt, UTC, microseconds' }),
  backfill: Type.Optional(
    Type.Literal(true, {
      description: 'Received more than the backfill age (60 s by default) after its timestamp',
    }),
  ),
});

export const POSITION_EXAMPLE = 'k7f3:0-95,3-140';

export const PositionSchema = Type.String({
  description: 'All pills up to and including these cursors are in the answer',
  examples: [POSITION_EXAMPLE],
});
