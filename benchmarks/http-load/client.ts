import { monotonicMicros } from '../clock.ts';
import { dueCount, plannedMicros } from '../end-to-end/plan.ts';
import { runTicker } from '../end-to-end/ticker.ts';
import { createLatencies } from '../histogram.ts';
import { createTimeline } from '../timeline.ts';
import { type Connection, connect } from './connection.ts';
import type { HttpLoad, HttpLoadReport } from './plan.ts';
import { createRequests, type Requests } from './requests.ts';

// A process of its own, forked by load.ts, so that its CPU can be told apart and its event loop is
// shared with nothing. Protocol: parent sends an HttpLoad and is told the report or { error };
// disconnecting ends it.

/** Between the opening of the connections and the first planned request. */
const HEAD_START_MICROS = 200_000;
const BROKEN = 'A connection broke: the service ended, or refused it.';

process.on('message', (load: HttpLoad) => {
  run(load).then(
    (report) => process.send?.(report),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit(0));

async function run(load: HttpLoad): Promise<HttpLoadReport> {
  const requests = createRequests(load.asked);
  const connections = await Promise.all(
    Array.from({ length: load.connections }, () => connect(load.port)),
  );
  try {
    const before = process.cpuUsage();
    const seen = await (load.perS === null
      ? runClosed(load, requests, connections)
      : runOpen(load, load.perS, requests, connections));
    const { user, system } = process.cpuUsage(before);
    const perS = seen.ok / seen.seconds;
    return { ...seen, perS, cpuS: (user + system) / 1e6 };
  } finally {
    for (const connection of connections) connection.close();
  }
}

type Seen = Omit<HttpLoadReport, 'perS' | 'cpuS'>;

/** Each connection asks again as soon as it is answered. */
async function runClosed(
  load: HttpLoad,
  requests: Requests,
  connections: readonly Connection[],
): Promise<Seen> {
  const failures: Record<string, number> = {};
  const startedAt = performance.now();
  let isOver = false;
  let ok = 0;
  const timer = setTimeout(() => {
    isOver = true;
  }, load.seconds * 1_000);
  const turnOf = (connection: Connection) =>
    new Promise<void>((resolve, reject) => {
      const onAnswer = (status: number, body: Buffer) => {
        if (status === 200 && requests.isDone(body)) ok += 1;
        else count(failures, status, body);
        if (status === 0) reject(new Error(BROKEN));
        else if (isOver) resolve();
        else ask();
      };
      const ask = () => connection.ask(requests.next(), onAnswer);
      ask();
    });
  try {
    await Promise.all(connections.map(turnOf));
  } finally {
    clearTimeout(timer);
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  return {
    ...{ ok, seconds, failures, timeline: [] },
    ...{ answered: null, answeredEncoded: null, lateness: null },
  };
}

/** Request i is due at start + i / rate; while all connections wait, it waits, and is timed. */
async function runOpen(
  load: HttpLoad,
  perS: number,
  requests: Requests,
  connections: readonly Connection[],
): Promise<Seen> {
  const plan = {
    startMicros: monotonicMicros() + HEAD_START_MICROS,
    perS,
    pills: Math.round(perS * load.seconds),
  };
  const answered = createLatencies();
  const lateness = createLatencies();
  const timeline = createTimeline(plan.startMicros);
  const failures: Record<string, number> = {};
  // In turn: one that is never used is closed by the service after its time-out (15 s).
  const idle = [...connections];
  let sent = 0;
  let due = 0;
  let done = 0;
  let ok = 0;
  let finish: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const finished = new Promise<void>((resolve, reject) => {
    finish = resolve;
    fail = reject;
  });

  const send = (connection: Connection) => {
    const planned = plannedMicros(plan, sent);
    sent += 1;
    connection.ask(requests.next(), (status, body) => {
      if (status === 0) {
        fail(new Error(BROKEN));
        return;
      }
      if (status === 200 && requests.isDone(body)) {
        ok += 1;
        const micros = monotonicMicros() - planned;
        answered.record(micros);
        timeline.record(planned, micros);
      } else count(failures, status, body);
      done += 1;
      idle.push(connection);
      if (done === plan.pills) finish();
      else sendDue();
    });
  };
  const sendDue = () => {
    while (sent < due && idle.length > 0) send(idle.shift()!);
  };
  const onTick = () => {
    const now = monotonicMicros();
    for (const until = dueCount(plan, now); due < until; due += 1) {
      lateness.record(now - plannedMicros(plan, due));
    }
    sendDue();
  };
  const ticking = runTicker(
    { startMicros: plan.startMicros, everyMicros: 1e6 / perS, count: plan.pills },
    onTick,
  );
  await Promise.race([ticking, finished]);
  onTick();
  await finished;
  return {
    ok,
    seconds: (monotonicMicros() - plan.startMicros) / 1e6,
    failures,
    answered: answered.percentiles(),
    answeredEncoded: answered.encoded(),
    timeline: timeline.seconds(),
    lateness: lateness.percentiles(),
  };
}

function count(failures: Record<string, number>, status: number, body: Buffer): void {
  // A 200 that does not say what it should is told by its beginning.
  const reason = status === 200 ? `200 ${body.toString('latin1', 0, 60)}` : String(status);
  failures[reason] = (failures[reason] ?? 0) + 1;
}
