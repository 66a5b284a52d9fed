import { createCounter } from '../../lib/metrics/metrics.ts';
import { networkOf } from './network-of.ts';

/** Kinds of events in a process: problem codes, close names and a few actions; more are `other`. */
const EVENTS_MAX = 100;
/** Pairs of event and network in a period; further networks are counted together. */
const PAIRS_MAX = 100;
/** Counts that wait for the database, over all periods; beyond that, only the metric counts. */
const WAITING_MAX = 1_000;
/** Accounts' events that wait or were written within the hour; further ones are only counted. */
const ACCOUNT_EVENTS_MAX = 10_000;
export const PERIOD_MS = 300_000;
/** An account gets at most one audit entry for each kind of event in this time, per process. */
const ENTRY_EVERY_MS = 3_600_000;
const OTHER = 'other';

const total = createCounter({
  name: 'pillole_security_events_total',
  help: 'Refused requests by problem code, closed sockets as socket_<close name>, and actions such as password_reset_requested.',
  labelNames: ['event'] as const,
});

/** Events of one kind from one network in five minutes. */
export interface WaitingCount {
  readonly periodMs: number;
  readonly event: string;
  readonly network: string;
  count: number;
}

/** Something that concerns an account, for its audit log. */
export interface AccountEvent {
  readonly accountId: string;
  /** noun.verb, as in the audit log. */
  readonly action: string;
  readonly actor: string;
  /** For `access.refused`: why. */
  readonly event?: string;
  readonly target?: string;
  readonly address?: string;
}

interface WaitingEvent {
  newest: AccountEvent;
  count: number;
  sinceMs: number;
  writtenAtMs: number;
}

const events = new Set<string>();
const waiting = new Map<string, WaitingCount>();
const accountEvents = new Map<string, WaitingEvent>();
let period = { ms: 0, pairs: new Set<string>() };

/**
 * Counts a security event. The memory and the number of rows and labels that any number of clients can
 * cause is bounded.
 * @param event of a closed set; never a text of a client
 */
export function countSecurityEvent(event: string, address: string): void {
  if (events.size < EVENTS_MAX) events.add(event);
  const known = events.has(event) ? event : OTHER;
  total.inc({ event: known });
  const ms = Math.floor(Date.now() / PERIOD_MS) * PERIOD_MS;
  if (ms !== period.ms) period = { ms, pairs: new Set() };
  const own = networkOf(address);
  const pair = `${known} ${own}`;
  if (period.pairs.size < PAIRS_MAX) period.pairs.add(pair);
  const network = period.pairs.has(pair) ? own : OTHER;
  const key = `${ms} ${known} ${network}`;
  const count = waiting.get(key);
  if (count !== undefined) count.count += 1;
  else if (waiting.size < WAITING_MAX) {
    waiting.set(key, { periodMs: ms, event: known, network, count: 1 });
  }
}

/**
 * Notes an event for the audit log of an account. Attackers can cause these, so equal ones become one
 * entry an hour with their number.
 */
export function noteAccountEvent(newest: AccountEvent): void {
  const key = `${newest.accountId} ${newest.action} ${newest.event ?? newest.actor}`;
  const known = accountEvents.get(key);
  if (known === undefined) {
    if (accountEvents.size >= ACCOUNT_EVENTS_MAX) return;
    const [sinceMs, writtenAtMs] = [Date.now(), Number.NEGATIVE_INFINITY];
    accountEvents.set(key, { newest, count: 1, sinceMs, writtenAtMs });
    return;
  }
  if (known.count === 0) known.sinceMs = Date.now();
  known.newest = newest;
  known.count += 1;
}

/** Takes the counts that wait; those that cannot be stored are put back. */
export function takeCounts(): readonly WaitingCount[] {
  const taken = [...waiting.values()];
  waiting.clear();
  return taken;
}

export function putBackCounts(taken: readonly WaitingCount[]): void {
  for (const one of taken) {
    const key = `${one.periodMs} ${one.event} ${one.network}`;
    const newer = waiting.get(key);
    if (newer !== undefined) newer.count += one.count;
    else if (waiting.size < WAITING_MAX) waiting.set(key, one);
  }
}

/** The events of accounts whose entry is due, and forgets those that are over. */
export function dueAccountEvents(nowMs: number) {
  const due: {
    readonly newest: AccountEvent;
    readonly count: number;
    readonly since: Date;
    written(): void;
  }[] = [];
  for (const [key, event] of accountEvents) {
    if (nowMs - event.writtenAtMs < ENTRY_EVERY_MS) continue;
    if (event.count === 0) accountEvents.delete(key);
    else {
      const { newest, count, sinceMs } = event;
      const written = () => {
        event.count -= count;
        event.writtenAtMs = nowMs;
        event.sinceMs = nowMs;
      };
      due.push({ newest, count, since: new Date(sinceMs), written });
    }
  }
  return due;
}
