import { type LoadClient, percentilesOf, type Target } from '../load/load-client.ts';
import { type PillLoad, runPills } from '../load/pill-load.ts';
import { type Pattern, pillCount, wantedOf } from './plan.ts';

/** A server, and the load generator that writes to the log that it reads. */
export interface Server extends Target {
  /** `stream` is our process, `loop` the bare one beside it. */
  readonly name: 'stream' | 'loop' | 'dedicated';
  readonly pid: number | undefined;
  readonly load: PillLoad;
}

export type FanoutCell = Awaited<ReturnType<typeof measureCell>> & { readonly round: number };

const ARRIVALS_MAX_MS = 20_000;
const ARRIVALS_STALL_MS = 5_000;

/** Sends the pills of one run and waits until every socket has received its pills. */
export async function measureCell(
  server: Pick<Server, 'name' | 'pid' | 'load'>,
  client: LoadClient,
  options: {
    readonly pattern: Pattern;
    readonly perS: number;
    readonly seconds: number;
    readonly sockets: number;
    /** Processes of the run beside server, load client and generator. */
    readonly restPids?: readonly (number | undefined)[];
    /** Clients that take part in the run, but are not judged. */
    readonly unjudged?: readonly LoadClient[];
    readonly beside?: () => Promise<unknown>;
    readonly idPadding?: number;
  },
) {
  const { pattern, perS, seconds, sockets, restPids = [], unjudged = [] } = options;
  const pills = pillCount(perS, seconds);
  const wantedPerSocket = wantedOf(pattern, pills);
  const readers = {
    begin: (run: Parameters<LoadClient['begin']>[0]) =>
      Promise.all([client, ...unjudged].map((one) => one.begin(run))),
    arrived: client.arrived,
  };
  const { sent, cpu, valid } = await runPills(server.load, readers, {
    perS,
    pills,
    perPill: (wantedPerSocket / pills) * sockets,
    pids: { server: server.pid, client: client.pid, rest: restPids },
    maxMs: ARRIVALS_MAX_MS,
    stallMs: ARRIVALS_STALL_MS,
    beside: options.beside,
    idPadding: options.idPadding,
  });
  const report = await client.report();
  return {
    target: server.name,
    pattern,
    perS,
    sockets,
    pills,
    wantedPerSocket,
    /** False where pills were sent too late: the latencies measure the generator. */
    valid,
    notAcknowledged: sent.failed.length,
    acknowledged: sent.acknowledged,
    lateness: sent.lateness,
    client: report,
    /** Planned send to the pill at the load client, over all sockets, in µs. */
    delivered: percentilesOf(report.histogram),
    /** Pills that sockets were subscribed to and did not get, over all sockets. */
    lost: wantedPerSocket * sockets - report.received,
    /** From the first planned pill to the last arrival, at least the run's length. */
    seconds: cpu.seconds,
    deliveriesPerS: report.received / cpu.seconds,
    /** CPU seconds of the server in that time, for a million deliveries. */
    serverSecondsPerMillion: ((cpu.cpu.server ?? Number.NaN) * 1e6) / report.received,
    /** Cores in that time: server, load client, the rest of this run, unrelated processes. */
    serverCores: cpu.coresOf('server'),
    clientCores: cpu.coresOf('client'),
    restCores: cpu.coresOf('rest') + cpu.coresOf('load generator'),
    otherCores: cpu.otherCores,
  };
}

/** Whether every socket got each of its pills, once, and none was closed. */
export function isWhole(
  cell: Pick<FanoutCell, 'client' | 'wantedPerSocket' | 'notAcknowledged' | 'sockets'>,
): boolean {
  const { client, wantedPerSocket, notAcknowledged, sockets } = cell;
  if (notAcknowledged + client.doubled + client.closed + client.errors > 0) return false;
  return (
    sockets === 0 ||
    (client.receivedMin === wantedPerSocket && client.receivedMax === wantedPerSocket)
  );
}
