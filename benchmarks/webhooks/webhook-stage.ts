import { sql } from 'kysely';
import { waitUntil } from '../../deploy/local/wait-until.ts';
import { newId } from '../../domain/access/id.ts';
import type { Pepper } from '../../domain/access/pepper.ts';
import { createSeal } from '../../domain/access/sealing.ts';
import { newSecret } from '../../domain/webhooks/secrets/secret.ts';
import { benchSymbols } from '../harness/bench-pills.ts';
import type { Stage } from '../harness/stage.ts';
import { startWorker } from '../harness/worker.ts';
import { startLoad } from '../load/pill-load.ts';
import type { Order, ReceiverReport } from './receiver-process.ts';

/** Receiver, load generator, and the processes between them. */
export type WebhookStage = Awaited<ReturnType<typeof openWebhookStage>>;

type Database = ReturnType<Stage['openDatabase']>;

const KNOWN_MAX_MS = 30_000;
/** Messages a second of one endpoint: above the measured rates. */
const RATE_PER_S = 1_000;
const MAX_AGE_S = 3_600;

/** Starts ingest, the dispatcher, the receiver and the load generator. */
export async function openWebhookStage(stage: Stage) {
  const { engines, say } = stage;
  const log = await stage.addNamespace('webhooks');
  const { namespace } = log;
  // The endpoints belong to its institutional account.
  const key = await stage.addDemoKey(namespace);
  const db = stage.openDatabase(namespace);
  const worker = startWorker('webhooks/receiver-process');
  stage.onStop(worker.stop);
  const receiver = (order: Order) => worker.ask<ReceiverReport>(order);
  const { port } = await receiver({});
  say('starting ingest and the dispatcher');
  const ingest = await stage.start('ingest', namespace);
  const dispatcher = await stage.start('webhooks', namespace);
  // Before there is an endpoint: the pills that open the connections are not delivered.
  const load = await startLoad({
    via: 'http',
    log,
    symbols: benchSymbols(),
    ingest: `http://127.0.0.1:${ingest.port}`,
  });
  stage.onStop(load.stop);

  let made: { readonly id: string; readonly secret: string }[] = [];
  const add = async (endpoints: readonly number[]) => {
    const urls = endpoints.map((endpoint) => `http://127.0.0.1:${port}/${endpoint}`);
    const added = await insertEndpoints(db, urls, stage.pepper);
    for (const [at, endpoint] of endpoints.entries()) made[endpoint] = added[at]!;
    await receiver({ secrets: made.map(({ secret }) => secret) });
    await untilKnown(dispatcher.metricsPort, made.length);
  };
  /** Messages that wait for the endpoints are deleted too. */
  const remove = async (ids: readonly string[]) => {
    if (ids.length > 0) await db.deleteFrom('webhook_endpoints').where('id', 'in', ids).execute();
    await untilKnown(dispatcher.metricsPort, made.length - ids.length);
  };
  return {
    say,
    log,
    key,
    db,
    ingest,
    dispatcher,
    receiver,
    load,
    pids: { dispatcher: dispatcher.pid, postgres: engines.pids().postgres },
    waiting: () => countWaiting(db),
    /** Replaces all endpoints by new ones, and waits until the dispatcher knows them. */
    async makeEndpoints(count: number) {
      await remove(made.map(({ id }) => id));
      made = [];
      await receiver({ respond: { how: 'fails', endpoints: [] } });
      await add(Array.from({ length: count }, (_, endpoint) => endpoint));
    },
    /** Replaces one endpoint, together with its waiting messages. */
    async replaceEndpoint(endpoint: number) {
      await remove([made[endpoint]!.id]);
      await add([endpoint]);
    },
  };
}

/** Inserts endpoints as rows: enabled at once, on all pills, for the institutional account. */
async function insertEndpoints(db: Database, urls: readonly string[], pepper: Pepper) {
  const seal = createSeal(pepper);
  const { account_id } = await db
    .selectFrom('subscriptions')
    .select('account_id')
    .where('tier', '=', 'institutional')
    .executeTakeFirstOrThrow();
  const made = urls.map((url) => ({ id: newId('whe'), url, secret: newSecret() }));
  const endpoints = made.map(({ id, url }) => ({
    ...{ id, account_id, url, rate_per_s: RATE_PER_S, max_age_s: MAX_AGE_S },
    ...{ event_types: ['pill.published'], status: 'enabled' as const, challenge: newId('chl') },
  }));
  const secrets = made.map(({ id, secret }) => {
    return { endpoint_id: id, account_id, sealed: seal.seal(secret.bytes, id) };
  });
  await db.transaction().execute(async (tx) => {
    await tx.insertInto('webhook_endpoints').values(endpoints).execute();
    await tx.insertInto('webhook_secrets').values(secrets).execute();
  });
  return made.map(({ id, secret }) => ({ id, secret: secret.text }));
}

function untilKnown(metricsPort: number, count: number): Promise<void> {
  const isKnown = async () => {
    const metrics = await fetch(`http://127.0.0.1:${metricsPort}/metrics`);
    return new RegExp(`^pillole_webhook_endpoints ${count}$`, 'm').test(await metrics.text());
  };
  return waitUntil('the dispatcher to know its endpoints', isKnown, { timeoutMs: KNOWN_MAX_MS });
}

/**
 * Messages and pills that wait in PostgreSQL for an attempt. `overdue` messages wait for over a
 * second: first attempts do not keep up.
 */
async function countWaiting(db: Database) {
  const { rows } = await sql<Record<'messages' | 'pills' | 'overdue', string>>`
    SELECT count(*) AS messages, coalesce(sum(pills), 0) AS pills,
      count(*) FILTER (WHERE created_at < now() - interval '1 second') AS overdue
    FROM webhook_deliveries WHERE status = 'waiting'`.execute(db);
  const { messages, pills, overdue } = rows[0]!;
  return { messages: Number(messages), pills: Number(pills), overdue: Number(overdue) };
}
