import type { AnyDestinationType } from './destination-type.ts';
import { s3 } from './s3/s3-type.ts';

/** All types of destinations, by name. */
export const DESTINATION_TYPES: ReadonlyMap<string, AnyDestinationType> = new Map(
  [s3].map((type) => [type.name, type]),
);
