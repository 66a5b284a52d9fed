import { Type } from 'typebox';
import { MEDIA_TYPES } from './media-type.ts';

const binary = (description: string, begin: string) => ({
  schema: Type.String({ format: 'binary', description }),
  example: begin,
});

/** Arrow and Parquet of an answer, for the OpenAPI document. */
export const BINARY_ANSWERS = {
  [MEDIA_TYPES.arrow]: binary('Arrow IPC stream, not compressed', '\uffff'),
  [MEDIA_TYPES.parquet]: binary('Parquet, compressed with zstd', 'PAR1'),
};
