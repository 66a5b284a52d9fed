import { setTimeout as sleep } from 'node:timers/promises';
import { openProducer } from '../../lib/kafka/producer.ts';
import type { Pill } from '../../schemas/pill.ts';
import { pillJson } from '../../schemas/public-pill.ts';
import { makePill, openBenchKafka, openPillSender } from '../harness/bench-pills.ts';
import { createLatencies } from '../harness/histogram.ts';
import { monotonicMicros, plannedMicros, runOpenLoop } from '../harness/open-loop.ts';
import { answerParent } from '../harness/worker.ts';
import { type Connection, connect } from '../http-load/connection.ts';
import { type LoadReport, type LoadSetup, type PillRun, pillId } from './pill-load.ts';

// A separate process: its event loop must not be shared with anything that it measures.

/** Sends one pill once. @returns why it was not accepted; undefined when acknowledged */
type Send = (pill: Pill) => Promise<string | undefined>;

const WARM_UP_PILLS = 200;
const WARM_UP_BURST = 20;
const ANSWERS_MAX_MS = 12_000;

let setup: LoadSetup;
let send: Send;

answerParent(async (request: { readonly setup?: LoadSetup; readonly run?: PillRun }) => {
  if (request.run !== undefined) return run(request.run);
  setup = request.setup!;
  send = await { http: openHttp, direct: openDirect, log: openLog }[setup.via](setup);
  return warmUp();
});

/** Posts over keep-alive connections; a pill waits while all are in use. */
async function openHttp({ ingest, credential, connections = 64 }: LoadSetup): Promise<Send> {
  const { host, port } = new URL(ingest!);
  const idle = await Promise.all(Array.from({ length: connections }, () => connect(Number(port))));
  const waiting: ((connection: Connection) => void)[] = [];
  const head = [
    ...['POST /api/pillole HTTP/1.1', `Host: ${host}`, 'Content-Type: application/json'],
    ...(credential === undefined ? [] : [`Authorization: Bearer ${credential}`]),
    'Content-Length: ',
  ].join('\r\n');
  const release = (connection: Connection) => {
    const next = waiting.shift();
    if (next === undefined) idle.push(connection);
    else next(connection);
  };
  return async (pill) => {
    const body = pillJson(pill);
    const request = `${head}${Buffer.byteLength(body)}\r\n\r\n${body}`;
    const connection =
      idle.pop() ?? (await new Promise<Connection>((resolve) => waiting.push(resolve)));
    return new Promise((resolve) => {
      connection.send(request, ({ status }) => {
        const isBroken = status === 0;
        if (isBroken) connect(Number(port)).then(release, () => undefined);
        else release(connection);
        resolve(status === 200 ? undefined : isBroken ? 'connection broken' : `HTTP ${status}`);
      });
    });
  };
}

async function openDirect({ log }: LoadSetup): Promise<Send> {
  const sender = await openPillSender(log, 1);
  return async (pill) => {
    const { ok, refused, unknown } = await sender.send([pill]);
    return ok === 1 ? undefined : (refused[0] ?? unknown[0])?.reason;
  };
}

async function openLog({ log, logTopic }: LoadSetup): Promise<Send> {
  const producer = await openProducer(openBenchKafka(log.kafkaBrokers));
  return async ({ id }) => {
    await producer.produce([{ topic: logTopic!, partition: 0, key: id, value: Buffer.from(id) }]);
    return undefined;
  };
}

/** Opens the connections and warms the code of both sides, with pills that have ids of their own. */
async function warmUp(): Promise<void> {
  const name = `w${Date.now().toString(36)}`;
  for (let from = 0; from < WARM_UP_PILLS; from += WARM_UP_BURST) {
    const answers = Array.from({ length: WARM_UP_BURST }, (_, i) => send(pillOf(name, from + i)));
    const reason = (await Promise.all(answers)).find((answer) => answer !== undefined);
    if (reason !== undefined) throw new Error(`The warm-up was not accepted: ${reason}`);
  }
}

async function run(plan: PillRun): Promise<LoadReport> {
  const acknowledged = createLatencies();
  const failures: Record<string, number> = {};
  const failed: number[] = [];
  const answers: Promise<void>[] = [];
  const answersMicros = new Float64Array(plan.pills);
  const unanswered = new Set<number>();
  const fail = (pill: number, reason: string) => {
    failed.push(pill);
    failures[reason] = (failures[reason] ?? 0) + 1;
  };
  const sendOne = async (pill: number) => {
    unanswered.add(pill);
    try {
      const reason = await send(pillOf(plan.run, pill));
      if (reason !== undefined) return fail(pill, reason);
      const answered = monotonicMicros();
      acknowledged.record(answered - plannedMicros(plan, pill));
      answersMicros[pill] = answered;
    } catch (error) {
      fail(pill, (error as { code?: string }).code ?? (error as Error).message);
    } finally {
      unanswered.delete(pill);
    }
  };
  const lateness = await runOpenLoop(plan, (pill) => void answers.push(sendOne(pill)));
  const patience = new AbortController();
  const { signal } = patience;
  const timeout = sleep(ANSWERS_MAX_MS, undefined, { signal }).catch(() => undefined);
  await Promise.race([Promise.all(answers), timeout]);
  patience.abort();
  // These pills were never acknowledged, so readers that did not get them have lost nothing.
  for (const pill of unanswered) fail(pill, `no answer within ${ANSWERS_MAX_MS / 1_000} s`);
  return { acknowledged: acknowledged.spread(), lateness, failed, failures, answersMicros };
}

function pillOf(run: string, pill: number): Pill {
  return makePill(pillId(run, pill), setup.symbols[pill % setup.symbols.length]!, pill);
}
