import { createLatencies, createTimeline, type Percentiles } from '../harness/histogram.ts';
import { monotonicMicros, plannedMicros, runOpenLoop } from '../harness/open-loop.ts';
import { answerParent } from '../harness/worker.ts';
import { type Connection, connect } from './connection.ts';
import { createRequests, type RequestPlan } from './requests.ts';

// A separate process, so that its CPU can be measured separately and its event loop is not shared.

export interface HttpLoad {
  readonly port: number;
  readonly requests: RequestPlan;
  /** Keep-alive connections, with one request at a time on each. */
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second, open loop; 0 = closed loop, as fast as responses come. */
  readonly perS: number;
}

export type HttpLoadReport = Awaited<ReturnType<typeof run>>;

/** Between the opening of the connections and the first planned request. */
const HEAD_START_MICROS = 200_000;
const BROKEN = 'A connection broke: the service ended, or refused it.';

answerParent(run);

async function run({ port, requests: plan, connections: count, seconds, perS }: HttpLoad) {
  const requests = createRequests(plan);
  const connections = await Promise.all(Array.from({ length: count }, () => connect(port)));
  const failures: Record<string, number> = {};
  let ok = 0;
  /** Sends the next request, and calls back with whether it succeeded (of a batch: every row). */
  const exchange: Exchange = (connection, onDone, onBroken) =>
    connection.send(requests.next(), ({ status, body }) => {
      if (status === 0) return onBroken(new Error(BROKEN));
      const isSuccess = status === 200 && requests.isSuccess(body);
      if (isSuccess) ok += 1;
      else {
        // An unexpected body of a 200 is identified by its beginning.
        const reason = status === 200 ? `200 ${body.toString('latin1', 0, 60)}` : String(status);
        failures[reason] = (failures[reason] ?? 0) + 1;
      }
      onDone(isSuccess);
    });
  try {
    const before = process.cpuUsage();
    const done = await (perS === 0
      ? runClosed(connections, exchange, seconds)
      : runOpen(connections, exchange, seconds, perS));
    const { user, system } = process.cpuUsage(before);
    // CPU seconds are those of the load client itself.
    return { ok, failures, ...done, perS: ok / done.seconds, cpuS: (user + system) / 1e6 };
  } finally {
    for (const connection of connections) connection.close();
  }
}

type Exchange = (
  connection: Connection,
  onDone: (isSuccess: boolean) => void,
  onBroken: (error: Error) => void,
) => void;

/** Each connection sends its next request as soon as it has a response. */
async function runClosed(connections: readonly Connection[], exchange: Exchange, lengthS: number) {
  const startedAt = performance.now();
  const isOver = () => performance.now() - startedAt >= lengthS * 1_000;
  const loop = (connection: Connection) =>
    new Promise<void>((resolve, reject) => {
      const next = () => exchange(connection, () => (isOver() ? resolve() : next()), reject);
      next();
    });
  await Promise.all(connections.map(loop));
  return { seconds: (performance.now() - startedAt) / 1_000, open: null };
}

/** Request i is due at start + i / rate; while all connections are busy, it waits, and is timed. */
async function runOpen(
  connections: readonly Connection[],
  exchange: Exchange,
  lengthS: number,
  perS: number,
) {
  const startMicros = monotonicMicros() + HEAD_START_MICROS;
  const schedule = { startMicros, perS, pills: Math.round(perS * lengthS) };
  const answered = createLatencies();
  const timeline = createTimeline(startMicros);
  // In turn: the service closes a connection that stays unused for 15 s.
  const idle = [...connections];
  let [sent, due, done] = [0, 0, 0];
  // A request counts as late when it is ready too late, not when all connections are busy.
  const lateness = await new Promise<Percentiles>((resolve, reject) => {
    const sendDue = () => {
      while (sent < due && idle.length > 0) send(idle.shift()!);
    };
    const onDue = () => {
      due += 1;
    };
    const pacing = runOpenLoop(schedule, onDue, sendDue);
    const send = (connection: Connection) => {
      const planned = plannedMicros(schedule, sent);
      sent += 1;
      const onDone = (isSuccess: boolean) => {
        const micros = monotonicMicros() - planned;
        if (isSuccess) {
          answered.record(micros);
          timeline.record(planned, micros);
        }
        done += 1;
        idle.push(connection);
        if (done === schedule.pills) pacing.then(resolve, reject);
        else sendDue();
      };
      exchange(connection, onDone, reject);
    };
  });
  return {
    seconds: (monotonicMicros() - startMicros) / 1e6,
    /** Planned send to the complete response, in µs. */
    open: { answered: answered.spread(), timeline: timeline.seconds(), lateness },
  };
}
