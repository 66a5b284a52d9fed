import type { Database } from '../../lib/postgres/database.ts';

export interface AttemptPage {
  readonly limit: number;
  /** Id of the last row of the page before. */
  readonly before: string | undefined;
  readonly outcome: 'delivered' | 'failed' | undefined;
  readonly status: number | undefined;
  readonly from?: Date;
  readonly to?: Date;
}

/** Attempts of a destination, newest first. */
export function readAttempts(db: Database, destinationId: string, page: AttemptPage) {
  const { before, outcome, status, from, to } = page;
  let query = db
    .selectFrom('destination_attempts')
    .selectAll()
    .where('destination_id', '=', destinationId)
    .orderBy('id', 'desc')
    .limit(page.limit);
  if (before !== undefined) query = query.where('id', '<', before);
  if (outcome !== undefined) query = query.where('outcome', '=', outcome);
  if (status !== undefined) query = query.where('status', '=', status);
  if (from !== undefined) query = query.where('at', '>=', from);
  if (to !== undefined) query = query.where('at', '<', to);
  return query.execute();
}
