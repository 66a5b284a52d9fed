import { randomUUID } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { openTail } from '../../lib/kafka/tail.ts';
import { createTopics, deleteTopics } from '../../lib/kafka/topics.ts';
import { openBenchKafka } from '../harness/bench-pills.ts';
import { subscribeFrame } from '../harness/bench-socket.ts';
import { monotonicMicros } from '../harness/open-loop.ts';
import { addArrival, createArrivals, judgeArrivals } from '../load/deliveries.ts';
import type { OpenClient } from '../load/load-client.ts';
import { type LoadReport, type PillRun, pillNumber } from '../load/pill-load.ts';

/** Sockets, or a consumer of the log, whose pills are checked against the plan of each run. */
export type EndToEndReaders = Awaited<ReturnType<typeof openSockets | typeof openLogReader>>;

/** Checks the pills that readers get against the plan. */
export function createDeliveryMonitor(readers: number) {
  const eventLoop = monitorEventLoopDelay({ resolution: 5 });
  eventLoop.enable();
  let run: PillRun | undefined;
  let arrivals: ReturnType<typeof createArrivals>[] = [];
  let remarks: Record<string, number> = {};
  return {
    readers,
    /** Counts trouble. */
    remark(what: string) {
      remarks[what] = (remarks[what] ?? 0) + 1;
    },
    /** A reader got a pill. */
    receive(reader: number, id: string, now: number) {
      const pill = run === undefined ? -1 : pillNumber(run.run, id);
      if (pill >= 0 && pill < run!.pills) addArrival(arrivals[reader]!, pill, now);
    },
    begin(next: PillRun) {
      [run, remarks] = [next, {}];
      arrivals = Array.from({ length: readers }, () => createArrivals(next.pills));
      eventLoop.reset();
    },
    arrived: (failed: readonly number[]) =>
      // A send may fail after the log has the pill.
      arrivals.reduce(
        (sum, { pills, times }) => sum + pills - failed.filter((pill) => times[pill]! > 0).length,
        0,
      ),
    /** Reports on the run, and ends it. */
    end(sent: Pick<LoadReport, 'answersMicros'>) {
      const { sincePlanned: delivered, ...judged } = judgeArrivals(run!, sent, arrivals);
      run = undefined;
      // How late the event loop of this process was at the 99th percentile, in µs.
      const eventLoopP99 = Math.round(eventLoop.percentile(99) / 1000);
      return { ...judged, delivered, remarks, eventLoopP99 };
    },
  };
}

/** Opens sockets on all symbols, of the compiled load client; resolves when all are live. */
export async function openSockets(
  openClient: OpenClient,
  stream: string,
  apiKey: string,
  count: number,
) {
  const target = { url: `${stream}/api/stream`, key: apiKey, saysLive: true };
  const client = await openClient(target, count, [subscribeFrame(['*'])], { keepsArrivals: true });
  let run: PillRun | undefined;
  return {
    readers: count,
    /** The process that holds the sockets. */
    pid: client.pid,
    begin(next: PillRun) {
      run = next;
      return client.begin(next);
    },
    async arrived(failed: readonly number[]): Promise<number> {
      // A send may fail after the log has the pill; such a run is not clean anyway.
      const { received } = await client.state();
      return received - failed.length * count;
    },
    async end(sent: Pick<LoadReport, 'answersMicros'>) {
      const { doubled, closed, errors, firstError } = await client.report();
      const arrivals = [];
      // One after the other: the client takes a command after the answer to the one before.
      for (let socket = 0; socket < count; socket += 1) {
        arrivals.push(await client.arrivalsAt(socket));
      }
      const { sincePlanned: delivered, ...judged } = judgeArrivals(run!, sent, arrivals);
      const remarks = closed + errors === 0 ? {} : { [firstError]: closed + errors };
      return { ...judged, doubled, delivered, remarks };
    },
    close: client.stop,
  };
}

/** Reads a topic of its own, whose records are ids: the time that the log alone takes. */
export async function openLogReader(kafka: string) {
  const client = openBenchKafka(kafka);
  const topic = `bench.log.${randomUUID()}`;
  await createTopics(client, [{ name: topic, partitions: 1, config: {} }]);
  const monitor = createDeliveryMonitor(1);
  const tail = await openTail({
    client,
    topic,
    from: new Map(),
    onRecords(_partition, records) {
      const now = monotonicMicros();
      for (const { value } of records) monitor.receive(0, value?.toString('utf8') ?? '', now);
    },
    onFatal: (error) => monitor.remark(error.message),
  });
  const close = async () => {
    await tail.close();
    await deleteTopics(client, [topic]);
  };
  return { ...monitor, pid: process.pid, topic, close };
}
