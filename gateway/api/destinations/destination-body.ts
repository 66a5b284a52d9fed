import { type Destination, readPositions } from '../../../domain/destinations/destination.ts';
import { formatPosition } from '../../../schemas/position.ts';
import { bodyOf } from '../../http/answer-body.ts';
import type { DestinationDeps } from './destination-deps.ts';
import { DestinationBody, stateOf } from './schemas.ts';

/** Destinations as their owner sees them, with how far they are behind the log. */
export async function shownDestinations(
  { db, epoch, readLogEnd }: Pick<DestinationDeps, 'db' | 'epoch' | 'readLogEnd'>,
  found: readonly Destination[],
) {
  const [positions, end] = await Promise.all([
    readPositions(
      db,
      epoch,
      found.map(({ id }) => id),
    ),
    readLogEnd(),
  ]);
  return found.map((destination) => {
    const of = positions.get(destination.id);
    const delivered = new Map([...(of?.next ?? [])].map(([at, next]) => [at, next - 1]));
    const lag = [...(end?.offsets ?? [])].reduce(
      (sum, [partition, last]) => sum + Math.max(0, last - (delivered.get(partition) ?? -1)),
      0,
    );
    const known = [...delivered].filter(([, offset]) => offset >= 0);
    return bodyOf(DestinationBody, {
      ...destination,
      ...destination.filter,
      state: stateOf(destination),
      position: known.length === 0 ? undefined : formatPosition(epoch, new Map(known)),
      lagRecords: end === undefined ? undefined : lag,
      deliveredUntil: of?.deliveredUntil,
    });
  });
}
