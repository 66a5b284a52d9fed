import { connectionHint } from '../../lib/config/connection-hint.ts';
import { type Lifecycle, runProcess } from '../../lib/run/run-process.ts';
import { retryForever } from '../../lib/timing/backoff.ts';
import { type Credentials, openCredentials } from '../http/generator-credentials.ts';
import { type IngestConfig, readIngestConfig } from './config.ts';
import { createIngestServer } from './ingest-server.ts';
import { watchLog } from './log-health.ts';
import { observeIngest } from './metrics.ts';
import { openIntake } from './open-intake.ts';
import type { Senders } from './receive.ts';
import { startRefusalReports } from './refusal-reports.ts';
import { refusals } from './refusals.ts';

/** Listens at once, and accepts pills once the log is open. */
async function buildIngest(config: IngestConfig, life: Lifecycle): Promise<void> {
  const { log, signal } = life;
  let open: Awaited<ReturnType<typeof openIntake>> | undefined;
  let notReady: () => string | undefined = () => 'starting';
  const reason = () => (signal.aborted ? 'stopping' : notReady());
  life.readyWhen(reason);

  const credentials =
    config.credentialsFile === undefined ? undefined : openCredentials(config.credentialsFile, log);
  life.onStop('credentials', () => credentials?.close());
  const reports = startRefusalReports(refusals, config, log);
  life.onStop('producers', async () => {
    await Promise.all([open?.producer.close(), reports.close()]);
  });
  const server = createIngestServer(
    sendersOf(credentials, config),
    () => open?.intake,
    reason,
    log,
    config.trustedProxies,
  );
  observeIngest({
    requests_in_flight: server.receiver.requestsInFlight,
    bodies_bytes: server.receiver.bodyBytes,
    symbols: () => open?.symbols.size() ?? 0,
    identities: () => open?.identities.size() ?? 0,
    clock_skew_seconds: () => (open?.intake.skew.estimate() ?? 0) / 1e6,
  });
  const address = await server.listen(config.host, config.port);
  life.onStop('http', server.close);
  log.info({ address, credentials: credentials !== undefined }, 'listening');

  retryForever(() => openIntake(config, log), {
    firstMs: 200,
    maxMs: 5_000,
    signal,
    onError: (error, attempts) => {
      notReady = () => `starting: ${error.message}`;
      log.warn({ err: error, attempts, hint: connectionHint(error) }, 'the log is not open yet');
    },
  }).then(
    (opened) => {
      open = opened;
      if (signal.aborted) return opened.producer.close();
      const health = watchLog(opened.health);
      life.onStop('log health', health.close);
      notReady = health.problem;
    },
    // Only an abort ends the retries.
    (error) => life.fail(error),
  );
}

/** No page uses ingest, so an open server refuses web pages altogether. */
function sendersOf(credentials: Credentials | undefined, { hostnames }: IngestConfig): Senders {
  if (credentials !== undefined) return { credentials };
  return { openRule: { pages: 'none', hostnames } };
}

await runProcess('ingest', () => readIngestConfig(), buildIngest);
