import { formatPosition, type Offsets } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
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

/** `as_of` as answers tell it. @param hasAll all of the log is there, so nothing lags */
export function toldAsOf(
  epoch: string,
  { offsets, receivedAt }: Pick<Stored, 'offsets' | 'receivedAt'>,
  hasAll: boolean,
  now: Micros,
) {
  const lagMs =
    receivedAt === undefined ? null : Math.max(0, Math.round((now - receivedAt) / 1_000));
  return {
    position: formatPosition(epoch, offsets),
    received_at: receivedAt === undefined ? null : formatTimestamp(receivedAt),
    lag_ms: hasAll ? 0 : lagMs,
  };
}
