import { sql } from 'kysely';
import type { Log } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { runEvery } from '../../lib/timing/run-every.ts';
import { newId } from '../access/id.ts';

const LOOK_MS = 5_000;
const WRITE_MS = 30_000;
/** A failure that is over sooner is no incident. */
export const INCIDENT_MIN_MS = 10_000;
/** Hours, and incidents that are over, that wait for PostgreSQL; beyond them the oldest are dropped. */
export const HELD_MAX = 100;
const HOUR_MS = 3_600_000;

/** Parts that fail now; undefined while the process starts, which counts as neither. */
export type Failing = readonly string[] | undefined;

interface Incident {
  readonly id: string;
  readonly component: string;
  readonly beganMs: number;
  readonly seenMs: number;
  readonly isOver: boolean;
}

interface HourSeconds {
  readonly hourMs: number;
  readonly okS: number;
  readonly degradedS: number;
}

/**
 * Looks at the state of the service every five seconds, and stores seconds by state and incidents.
 * While PostgreSQL is unavailable, they wait here.
 */
export function startAvailabilityLog(of: {
  readonly db: Database;
  readonly failing: () => Failing;
  readonly log: Log;
  readonly now?: () => number;
  readonly lookMs?: number;
  readonly writeMs?: number;
}) {
  const { db, failing, log, now = Date.now, lookMs = LOOK_MS, writeMs = WRITE_MS } = of;
  const record = createAvailabilityRecord(now());
  const look = async () => record.look(failing(), now());
  const write = () => record.write(db);
  const jobs = [
    runEvery({ name: 'availability', everyMs: lookMs, log, run: look }),
    runEvery({ name: 'availability log', everyMs: writeMs, jitter: 0.1, log, run: write }),
  ];
  return {
    async close(): Promise<void> {
      await Promise.all(jobs.map((job) => job.close()));
      await look();
      await write().catch((err) => log.warn({ err }, 'the last availability is lost'));
    },
  };
}

/** Seconds by state and hour, and incidents, until they are written. */
export function createAvailabilityRecord(startMs: number) {
  let lookedMs = startMs;
  let waiting: readonly HourSeconds[] = [];
  /** Incidents that go on, by component. */
  const running = new Map<string, Incident>();
  let ended: readonly Incident[] = [];

  function end(incident: Incident, nowMs: number): void {
    running.delete(incident.component);
    const over = { ...incident, seenMs: nowMs, isOver: true };
    if (isLong(over)) ended = [...ended, over].slice(-HELD_MAX);
  }

  return {
    look(failing: Failing, nowMs: number): void {
      // A process that was suspended has seen nothing meanwhile: two intervals at most.
      const elapsedS = Math.min(2 * LOOK_MS, Math.max(0, nowMs - lookedMs)) / 1_000;
      lookedMs = nowMs;
      if (failing === undefined) return;
      waiting = addSeconds(waiting, [
        failing.length === 0
          ? { hourMs: hourOf(nowMs), okS: elapsedS, degradedS: 0 }
          : { hourMs: hourOf(nowMs), okS: 0, degradedS: elapsedS },
      ]);
      for (const component of failing) {
        const { id, beganMs } = running.get(component) ?? { id: newId('inc'), beganMs: nowMs };
        running.set(component, { id, component, beganMs, seenMs: nowMs, isOver: false });
      }
      for (const incident of [...running.values()])
        if (!failing.includes(incident.component)) end(incident, nowMs);
    },
    /** @throws any database error; then everything is kept for the next call */
    async write(db: Database): Promise<void> {
      const hours = waiting;
      waiting = [];
      try {
        if (hours.length > 0) await storeSeconds(db, hours);
      } catch (error) {
        waiting = addSeconds(hours, waiting);
        throw error;
      }
      const incidents = [...ended, ...[...running.values()].filter(isLong)];
      if (incidents.length > 0) await storeIncidents(db, incidents);
      ended = ended.filter((incident) => !incidents.includes(incident));
    },
  };
}

const hourOf = (ms: number) => Math.floor(ms / HOUR_MS) * HOUR_MS;
const isLong = ({ beganMs, seenMs }: Incident) => seenMs - beganMs >= INCIDENT_MIN_MS;

function addSeconds(to: readonly HourSeconds[], more: readonly HourSeconds[]) {
  const byHour = new Map(to.map((hour) => [hour.hourMs, hour]));
  for (const { hourMs, okS, degradedS } of more) {
    const before = byHour.get(hourMs) ?? { okS: 0, degradedS: 0 };
    const sum = { okS: before.okS + okS, degradedS: before.degradedS + degradedS };
    byHour.set(hourMs, { hourMs, ...sum });
  }
  return [...byHour.values()].slice(-HELD_MAX);
}

async function storeSeconds(db: Database, hours: readonly HourSeconds[]): Promise<void> {
  await sql`
    INSERT INTO availability_hours (hour, ok_s, degraded_s)
    SELECT to_timestamp(h.ms / 1000), h.ok, h.degraded
    FROM unnest(${hours.map(({ hourMs }) => hourMs)}::double precision[],
      ${hours.map(({ okS }) => okS)}::double precision[],
      ${hours.map(({ degradedS }) => degradedS)}::double precision[]) AS h(ms, ok, degraded)
    ORDER BY h.ms
    ON CONFLICT (hour) DO UPDATE SET ok_s = availability_hours.ok_s + excluded.ok_s,
      degraded_s = availability_hours.degraded_s + excluded.degraded_s`.execute(db);
}

async function storeIncidents(db: Database, incidents: readonly Incident[]): Promise<void> {
  const rows = incidents.map(({ id, component, beganMs, seenMs, isOver }) => ({
    ...{ id, component, is_over: isOver },
    ...{ began_at: new Date(beganMs), seen_at: new Date(seenMs) },
  }));
  await db
    .insertInto('service_incidents')
    .values(rows)
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet({
        seen_at: sql<Date>`excluded.seen_at`,
        is_over: sql<boolean>`excluded.is_over`,
      }),
    )
    .execute();
}
