import { Type } from 'typebox';
import { SYMBOL_PATTERN } from './pill.ts';

/** JSON schemas of the fields that have one form in REST, stream and webhooks. */
export const PILL_FIELDS = {
  id: Type.String({
    minLength: 1,
    description: 'Chosen by the sender; symbol and id identify the pill.',
  }),
  symbol: Type.String({ pattern: SYMBOL_PATTERN, description: 'Market symbol.' }),
  gross_spread_percent: Type.Number({ description: 'Spread in percent of the price, as sent.' }),
  market_state: Type.String({ minLength: 1, description: 'Label of the sender, as sent.' }),
  confidence: Type.Number({
    minimum: 0,
    description: 'As sent, from 0 to 100 unless the operator has set another limit.',
  }),
};
