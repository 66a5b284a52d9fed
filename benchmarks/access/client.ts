import { monotonicMicros } from '../clock.ts';
import { dueCount, plannedMicros } from '../end-to-end/plan.ts';
import { runTicker } from '../end-to-end/ticker.ts';
import { createLatencies } from '../histogram.ts';
import { type Connection, connect } from './connection.ts';
import { type AccessLoad, type AccessLoadReport, requestOf } from './plan.ts';

// A process of its own, forked by load.ts, so that its CPU can be told apart and its event loop is
// shared with nothing. Protocol: parent sends an AccessLoad and is told the report or { error };
// disconnecting ends it.

/** Between the opening of the connections and the first planned request. */
const HEAD_START_MICROS = 200_000;
const BROKEN = 'A connection broke: the service ended, or refused it.';

process.on('message', (load: AccessLoad) => {
  run(load).then(
    (report) => process.send?.(report),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit(0));

async function run(load: AccessLoad): Promise<AccessLoadReport> {
  const connections = await Promise.all(
    Array.from({ length: load.connections }, () => connect(load.port)),
  );
  try {
    const before = process.cpuUsage();
    const seen = await (load.perS === null
      ? runClosed(load, connections)
      : runOpen(load, load.perS, connections));
    const { user, system } = process.cpuUsage(before);
    const perS = seen.ok / seen.seconds;
    return { ...seen, perS, cpuS: (user + system) / 1e6 };
  } finally {
    for (const connection of connections) connection.close();
  }
}

type Seen = Omit<AccessLoadReport, 'perS' | 'cpuS'>;

/** Each connection asks again as soon as it is answered. */
async function runClosed(load: AccessLoad, connections: readonly Connection[]): Promise<Seen> {
  const requests = load.symbols.map((symbol) => requestOf(symbol, load.key));
  const failures: Record<string, number> = {};
  const startedAt = performance.now();
  let isOver = false;
  let ok = 0;
  let next = 0;
  const timer = setTimeout(() => {
    isOver = true;
  }, load.seconds * 1_000);
  const turnOf = (connection: Connection) =>
    new Promise<void>((resolve, reject) => {
      const onAnswer = (status: number) => {
        if (status === 200) ok += 1;
        else failures[status] = (failures[status] ?? 0) + 1;
        if (status === 0) reject(new Error(BROKEN));
        else if (isOver) resolve();
        else ask();
      };
      const ask = () => {
        next = (next + 1) % requests.length;
        connection.ask(requests[next]!, onAnswer);
      };
      ask();
    });
  try {
    await Promise.all(connections.map(turnOf));
  } finally {
    clearTimeout(timer);
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  return { ok, seconds, failures, answered: null, answeredEncoded: null, lateness: null };
}

/** Request i is due at start + i / rate; while all connections wait, it waits, and is timed. */
async function runOpen(
  load: AccessLoad,
  perS: number,
  connections: readonly Connection[],
): Promise<Seen> {
  const requests = load.symbols.map((symbol) => requestOf(symbol, load.key));
  const plan = {
    startMicros: monotonicMicros() + HEAD_START_MICROS,
    perS,
    pills: Math.round(perS * load.seconds),
  };
  const answered = createLatencies();
  const lateness = createLatencies();
  const failures: Record<string, number> = {};
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
    connection.ask(requests[sent % requests.length]!, (status) => {
      if (status === 0) {
        fail(new Error(BROKEN));
        return;
      }
      if (status === 200) {
        ok += 1;
        answered.record(monotonicMicros() - planned);
      } else failures[status] = (failures[status] ?? 0) + 1;
      done += 1;
      idle.push(connection);
      if (done === plan.pills) finish();
      else sendDue();
    });
    sent += 1;
  };
  const sendDue = () => {
    while (sent < due && idle.length > 0) send(idle.pop()!);
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
    lateness: lateness.percentiles(),
  };
}
