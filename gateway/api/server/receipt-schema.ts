import { Type } from 'typebox';
import { RECEIPT_ALGORITHM } from '../../../schemas/receipt.ts';
import { orNull } from './schemas.ts';

const DIGEST_EXAMPLE = '5f0c2f1d9c0b7c4fb0d0b9e9ad8c9f7a6e1c25d8ff2a1b3c4d5e6f708192a3b4';

/** The members of a receipt, in every answer. */
export const RECEIPT_MEMBERS = {
  algorithm: Type.Literal(RECEIPT_ALGORITHM, {
    description: 'How `digest` is computed, see docs/analysts.md#receipts',
  }),
  epoch: Type.String({ description: 'The current epoch of the log', examples: ['k7f3'] }),
  count: Type.Integer({ description: 'Number of pills', minimum: 0, examples: [2] }),
  first: orNull(
    Type.String({ examples: ['3-131'] }),
    'The lowest cursor, by epoch, partition and offset; null: no pill',
  ),
  last: orNull(Type.String({ examples: ['3-132'] }), 'The highest cursor; null: no pill'),
  digest: Type.String({
    description: 'Sum of the SHA-256 of the pills modulo 2^256: their order does not matter',
    pattern: '^[0-9a-f]{64}$',
    examples: [DIGEST_EXAMPLE],
  }),
};

/** The receipt of a page and all earlier ones of its range. */
export const ReceiptSchema = Type.Object(
  {
    ...RECEIPT_MEMBERS,
    complete: Type.Boolean({
      description: 'True on the last page: the receipt covers the whole range',
      examples: [true],
    }),
  },
  { description: 'Covers this page and all earlier ones of the range' },
);
