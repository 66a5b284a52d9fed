import { type Static, Type } from 'typebox';
import { formatPosition, type Offsets } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import type { LogEnd } from '../log-end.ts';
import type { Select } from './select.ts';

/** How far the log is in the table of pills. */
export interface Stored {
  /** Every pill with effect up to and including these is there. */
  readonly offsets: Offsets;
  /** Receive time of the newest pill of each partition that has one, and of all of them. */
  readonly receivedAts: ReadonlyMap<number, Micros>;
  readonly receivedAt: Micros | undefined;
}

/** Reads what the sink tells of itself. @throws NoAnswer */
export async function readStored(select: Select, epoch: string): Promise<Stored> {
  const rows = await select<{ partition: number; last: number; received: Micros | null }>(
    `SELECT partition, max(offset) AS last, toUnixTimestamp64Micro(max(received_at)) AS received
     FROM pills_progress WHERE epoch = {epoch:String} GROUP BY partition`,
    { epoch },
  );
  const receivedAts = new Map(
    rows.flatMap(({ partition, received }) => (received === null ? [] : [[partition, received]])),
  );
  return {
    offsets: new Map(rows.map(({ partition, last }) => [partition, last])),
    receivedAts,
    receivedAt: receivedAts.size === 0 ? undefined : Math.max(...receivedAts.values()),
  };
}

/** Whether the pills up to these offsets are there. */
export function has({ offsets }: Pick<Stored, 'offsets'>, wanted: Offsets): boolean {
  return [...wanted].every(([partition, offset]) => (offsets.get(partition) ?? -1) >= offset);
}

/** Whether all of the log is there. Of a log that does not answer nobody knows: it is not. */
export function hasAllOf(stored: Pick<Stored, 'offsets'>, end: LogEnd | undefined): boolean {
  return end?.isCurrent === true && has(stored, end.offsets);
}

/** `as_of` of an answer. */
export const AsOfSchema = Type.Object({
  position: Type.String({ description: 'All pills up to these cursors were looked at' }),
  received_at: Type.Union([Type.String(), Type.Null()], {
    description: 'When the newest of them was received; null: there is none',
  }),
  lag_ms: Type.Union([Type.Integer(), Type.Null()], {
    description:
      '0: they were all that the log had half a second ago, or later. Else how long ago ' +
      '`received_at` was, in ms: newer ones may be missing',
  }),
});
export type AsOf = Readonly<Static<typeof AsOfSchema>>;

export const AS_OF_EXAMPLE: AsOf = {
  position: 'k7f3:0-95,3-140',
  received_at: '2026-11-20T01:02:07.880000Z',
  lag_ms: 640,
};

/**
 * `as_of` as answers tell it.
 * @param hasAll see `hasAllOf`
 * @param now µs since 1970
 */
export function toldAsOf(
  epoch: string,
  { offsets, receivedAt }: Pick<Stored, 'offsets' | 'receivedAt'>,
  hasAll: boolean,
  now: Micros,
): AsOf {
  const agoMs =
    receivedAt === undefined ? null : Math.max(0, Math.round((now - receivedAt) / 1_000));
  return {
    position: formatPosition(epoch, offsets),
    received_at: receivedAt === undefined ? null : formatTimestamp(receivedAt),
    lag_ms: hasAll ? 0 : agoMs,
  };
}
