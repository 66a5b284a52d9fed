import type { Transaction } from 'kysely';
import { createTurns, type TurnBounds, type Turns } from '../rate/turns.ts';
import { type Database, isDatabaseAway } from './database.ts';
import type { Tables } from './tables.ts';

/** Changes of accounts over one pool of ten connections: the other two always serve reads. */
export const CHANGE_TURNS: TurnBounds = {
  activeMax: 8,
  activeOfAccountMax: 1,
  waitingMax: 5_000,
  waitingOfAccountMax: 500,
  // A change takes some 10 ms on two busy cores, so the last of 500 hardly waits longer.
  waitingMs: 5_000,
};

/** Too many changes of this account wait already, or they wait too long. Nothing was changed. */
export class TurnRefusedError extends Error {
  override readonly name = 'TurnRefusedError';

  constructor() {
    super('Too many changes of this account wait: send them one after another.');
  }
}

/** The turns of a pool: all who use its connections share them. */
const turnsOf = new WeakMap<Database, Turns>();
const inTurns = new WeakSet<Transaction<Tables>>();

/**
 * Runs a transaction in the turn of an account. A statement that waits for a lock holds its
 * connection, so changes of one account, which lock the same rows, wait for their turn *before* they
 * take a connection; otherwise a single account could hold them all.
 * @param accountId or whatever else names the rows that are locked
 * @throws TurnRefusedError, and any database error
 */
export function inTurn<T>(
  db: Database,
  accountId: string,
  change: (tx: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  return takeTurn(db, accountId, () =>
    db.transaction().execute((tx) => {
      inTurns.add(tx);
      return change(tx);
    }),
  );
}

/** Runs statements outside of a transaction in the turn of an account; see `inTurn`. */
export async function takeTurn<T>(
  db: Database,
  accountId: string,
  work: () => Promise<T>,
): Promise<T> {
  const turns = turnsOf.get(db) ?? createTurns(CHANGE_TURNS);
  turnsOf.set(db, turns);
  const end = await turns.begin(accountId);
  if (end === undefined) throw new TurnRefusedError();
  try {
    return await work();
  } catch (error) {
    // Those behind would wait for the same time-out, one after another.
    if (isDatabaseAway(error)) turns.refuseWaiting(accountId);
    throw error;
  } finally {
    end();
  }
}

/** @throws if the transaction was begun without a turn, which is a bug of its caller */
export function assertInTurn(tx: Transaction<Tables>): void {
  if (!inTurns.has(tx)) throw new Error('A transaction that locks an account must use inTurn.');
}
