import type { Pepper } from '../../../domain/access/pepper.ts';
import { createSeal } from '../../../domain/access/sealing.ts';
import {
  createDestinations,
  type StartPositions,
} from '../../../domain/destinations/destinations.ts';
import { DESTINATION_LIMITS } from '../../../domain/destinations/limits.ts';
import type { SymbolState } from '../../../domain/order/judge.ts';
import { symbolStateOf } from '../../../domain/order/latest-fold.ts';
import type { LatestRow } from '../../../domain/order/latest-table.ts';
import type { Egress } from '../../../domain/webhooks/send/egress.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { createKeyedCounter } from '../../../lib/rate/window-counter.ts';
import type { ReadLogEnd } from '../clickhouse/log-end.ts';

/** The latest pills, as the API holds them. */
interface LatestPills {
  rows(): Iterable<LatestRow>;
  processed(): ReadonlyMap<number, number>;
}

interface Sources {
  readonly db: Database;
  readonly pepper: Pepper;
  readonly egress: Egress;
  readonly view: LatestPills;
  readonly readLogEnd: ReadLogEnd;
  readonly epoch: string;
  /** Number of partitions. */
  readonly partitions: number;
}

/** Dependencies of the destination routes. */
export type DestinationDeps = ReturnType<typeof openDestinations>;

export function openDestinations(of: Sources) {
  const { db, pepper, egress, readLogEnd, epoch } = of;
  const { testsPerMinuteMax: max } = DESTINATION_LIMITS;
  return {
    ...{ db, egress, readLogEnd, epoch },
    destinations: createDestinations({ db, seal: createSeal(pepper), policy: egress.policy }),
    tests: createKeyedCounter({ max, windowMs: 60_000 }),
    /** After the pills of the latest view, so that no later pill is left out. */
    now: () => positionsNow(of),
    earliest: () => positionsAtStart(of),
  };
}

function positionsNow({ view, epoch, partitions }: Sources): StartPositions {
  const symbols = Array.from({ length: partitions }, () => new Map<string, SymbolState>());
  for (const { partition, pill } of view.rows()) {
    symbols[partition]?.set(pill.symbol, symbolStateOf(pill));
  }
  const processed = view.processed();
  return {
    epoch,
    snapshots: new Map(
      symbols.map((states, partition) => {
        return [partition, { offset: (processed.get(partition) ?? -1) + 1, symbols: states }];
      }),
    ),
  };
}

function positionsAtStart({ epoch, partitions }: Sources): StartPositions {
  const start = () => ({ offset: 0, symbols: new Map<string, SymbolState>() });
  return {
    epoch,
    snapshots: new Map(Array.from({ length: partitions }, (_, partition) => [partition, start()])),
  };
}
