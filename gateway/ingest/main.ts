import { retryForever } from '../../lib/backoff.ts';
import { type Life, runProcess } from '../../lib/run.ts';
import { type IngestConfig, readIngestConfig } from './config.ts';
import { openCredentials } from './credentials.ts';
import { watchLog } from './log-health.ts';
import { observeIngest } from './metrics.ts';
import { type OpenIntake, openIntake } from './open-intake.ts';
import { createIngestServer } from './server.ts';

const START_BACKOFF = { firstMs: 200, maxMs: 5_000 };

/** The way of pills into the log. Listens at once; takes pills when the log is open. */
async function buildIngest(config: IngestConfig, life: Life): Promise<void> {
  const { log, signal } = life;
  let open: OpenIntake | undefined;
  let notReady: () => string | undefined = () => 'starting';
  const whyNot = () => (signal.aborted ? 'stopping' : notReady());
  life.readyWhen(whyNot);

  const credentials =
    config.credentialsFile === undefined ? undefined : openCredentials(config.credentialsFile, log);
  life.onStop('credentials', () => credentials?.close());
  life.onStop('producer', () => open?.producer.close());
  const server = createIngestServer({
    credentials,
    intake: () => open?.intake,
    notReady: whyNot,
    log,
  });
  observeIngest({
    requestsInFlight: server.receiver.requestsInFlight,
    bodyBytes: server.receiver.bodyBytes,
    symbols: () => open?.symbols.size() ?? 0,
    identities: () => open?.identities.size() ?? 0,
    skewMicros: () => open?.intake.skew.estimate() ?? 0,
  });
  const address = await server.listen(config.host, config.port);
  life.onStop('http', server.close);
  log.info({ address, credentials: credentials !== undefined }, 'listening');

  retryForever(() => openIntake(config, log), {
    ...START_BACKOFF,
    signal,
    onError: (error, attempts) => {
      notReady = () => `starting: ${error.message}`;
      log.warn({ err: error, attempts }, 'the log is not open yet');
    },
  }).then(
    (opened) => {
      open = opened;
      if (signal.aborted) return opened.producer.close();
      const health = watchLog(opened.health);
      life.onStop('log health', health.close);
      notReady = health.whyNot;
    },
    // Only an abort ends the trying.
    (error) => life.fail(error),
  );
}

await runProcess('ingest', () => readIngestConfig(), buildIngest);
