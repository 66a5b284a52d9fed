import { waitUntil } from '../../deploy/local/wait.ts';
import { readPepper } from '../../lib/access/pepper.ts';
import { INGEST, startBenchProcess, WEBHOOKS } from '../bench-process.ts';
import { type Load, startLoad } from '../end-to-end/load.ts';
import type { LoadPlan } from '../end-to-end/plan.ts';
import { buildStage, makeFolder, type OnStop } from '../fanout/stage.ts';
import { type EndpointRows, type MadeEndpoint, openEndpointRows } from './endpoint-rows.ts';
import { type Receiver, startReceiver } from './receiver.ts';

/** Everything that is measured, in a namespace of its own. */
export interface Stage {
  readonly receiver: Receiver;
  readonly rows: Pick<EndpointRows, 'waiting'>;
  readonly load: Load;
  /** All of a plan but what differs between runs. */
  readonly basePlan: LoadPlan;
  readonly dispatcherPid: number;
  /** The embedded PostgreSQL; undefined when it is another's. */
  readonly postgresPid: number | undefined;
  /** Removes all endpoints and makes so many new ones; the dispatcher knows them then. */
  makeEndpoints(count: number): Promise<void>;
  /** Puts a new endpoint in the place of another, with what waited for that. */
  replaceEndpoint(endpoint: number): Promise<void>;
}

const SYMBOLS = Array.from({ length: 50 }, (_, i) => `BENCH.${i}`);
const CONNECTIONS = 64;
const KNOWN_MAX_MS = 30_000;

/** Starts engines (those that environment variables name are used as they are) and processes. */
export async function buildWebhookStage(
  say: (line: string) => void,
  onStop: OnStop,
): Promise<Stage> {
  const { engines, place, ports, logs } = await buildStage(makeFolder(onStop), say, onStop);
  const { namespace } = logs.stream;
  const around = { engines, place, ports, namespace };
  const rows = openEndpointRows(engines.postgresUrl, namespace, readPepper(place.pepper));
  onStop(rows.close);
  const receiver = await startReceiver();
  onStop(receiver.stop);
  say('starting ingest and the dispatcher');
  const ingest = await startBenchProcess(INGEST, around);
  onStop(ingest.stop);
  const dispatcher = await startBenchProcess(WEBHOOKS, around);
  onStop(dispatcher.stop);

  const basePlan: LoadPlan = {
    ...{ via: 'http', run: 'webhooks-start', perS: 1, pills: 1, symbols: SYMBOLS, startMicros: 0 },
    ingest: `http://127.0.0.1:${ingest.port}`,
    ...{ credential: undefined, connections: CONNECTIONS, logTopic: '', tellsAnswers: true },
    ...{ kafka: engines.kafkaBrokers, registry: engines.registryUrl, namespace },
  };
  // Before there is an endpoint: nobody gets the pills that open the connections.
  const load = await startLoad(basePlan);
  onStop(load.stop);

  let made: MadeEndpoint[] = [];
  const known = (count: number) =>
    waitUntil(
      'the dispatcher to know its endpoints',
      async () => {
        const metrics = await fetch(`http://127.0.0.1:${dispatcher.metricsPort}/metrics`);
        const text = await metrics.text();
        return new RegExp(`^pillole_webhook_endpoints ${count}$`, 'm').test(text);
      },
      { timeoutMs: KNOWN_MAX_MS },
    );
  const add = async (endpoints: readonly number[]) => {
    const added = await rows.add(endpoints.map((endpoint) => receiver.urlOf(endpoint)));
    for (const [at, endpoint] of endpoints.entries()) made[endpoint] = added[at]!;
    await receiver.trust(made.map(({ secret }) => secret));
    await known(made.length);
  };
  return {
    ...{ receiver, rows, load, basePlan },
    ...{ dispatcherPid: dispatcher.pid, postgresPid: engines.pids().postgres },
    async makeEndpoints(count) {
      await rows.remove(made.map(({ id }) => id));
      await known(0);
      made = [];
      await receiver.answer('accepts', []);
      await add(Array.from({ length: count }, (_, endpoint) => endpoint));
    },
    async replaceEndpoint(endpoint) {
      await rows.remove([made[endpoint]!.id]);
      await known(made.length - 1);
      await add([endpoint]);
    },
  };
}
