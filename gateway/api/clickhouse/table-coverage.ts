import { type Static, Type } from 'typebox';
import { formatPosition, type Offsets } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { orNull } from '../server/schemas.ts';
import type { LogEnd } from './log-end.ts';
import type { Select } from './select.ts';

/** How much of the log the table `pills` holds. */
export interface TableCoverage {
  /** Every pill with effect up to and including these offsets is in the table. */
  readonly offsets: Offsets;
  /** Receive time of the newest pill, by partition (if it has one) and overall. */
  readonly receivedAts: ReadonlyMap<number, Micros>;
  readonly receivedAt: Micros | undefined;
}

/** Reads how far the analytics sink has written. @throws QueryError */
export async function readTableCoverage(select: Select, epoch: string): Promise<TableCoverage> {
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

/** Whether the table holds all pills up to these offsets. */
export function covers({ offsets }: Pick<TableCoverage, 'offsets'>, required: Offsets): boolean {
  return [...required].every(([partition, offset]) => (offsets.get(partition) ?? -1) >= offset);
}

/** Whether the table holds the whole log. False if the log does not answer: its end is unknown. */
export function coversLog(
  coverage: Pick<TableCoverage, 'offsets'>,
  end: Pick<LogEnd, 'offsets' | 'isCurrent'> | undefined,
): boolean {
  return end?.isCurrent === true && covers(coverage, end.offsets);
}

/** `as_of` of an answer. */
export const AsOfSchema = Type.Object({
  position: Type.String({
    description: 'The answer takes all pills up to these cursors into account',
    examples: ['k7f3:0-95,3-140'],
  }),
  received_at: orNull(
    Type.String({ examples: ['2026-11-20T01:02:07.880000Z'] }),
    'Receive time of the newest of these pills; null if there are none',
  ),
  lag_ms: orNull(
    Type.Integer({ examples: [640] }),
    '0: these were all pills in the log half a second ago or later. Otherwise the age of ' +
      '`received_at` in ms: newer pills may be missing',
  ),
});
export type AsOf = Readonly<Static<typeof AsOfSchema>>;

/**
 * Writes `as_of`.
 * @param isWholeLog see `coversLog`
 * @param now µs since 1970
 */
export function asOfBody(
  epoch: string,
  { offsets, receivedAt }: Pick<TableCoverage, 'offsets' | 'receivedAt'>,
  isWholeLog: boolean,
  now: Micros,
): AsOf {
  const ageMs =
    receivedAt === undefined ? null : Math.max(0, Math.round((now - receivedAt) / 1_000));
  return {
    position: formatPosition(epoch, offsets),
    received_at: receivedAt === undefined ? null : formatTimestamp(receivedAt),
    lag_ms: isWholeLog ? 0 : ageMs,
  };
}
