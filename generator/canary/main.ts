import { type Lifecycle, runProcess } from '../../lib/run/run-process.ts';
import { retryForever } from '../../lib/timing/backoff.ts';
import { runEvery } from '../../lib/timing/run-every.ts';
import { readCertificates } from './certificates.ts';
import { type CanaryConfig, readCanaryConfig } from './config.ts';
import { createProbe } from './probe.ts';
import { CHANNELS, createSightings, type Sightings } from './sightings.ts';
import { openSocket } from './socket.ts';
import { openWebhook } from './webhook.ts';

const CERTIFICATES_EVERY_MS = 3_600_000;

/**
 * Measures the whole way of a pill as a customer sees it: posts a pill of a test symbol every second,
 * and waits for it in each channel.
 */
await runProcess('canary', readCanaryConfig, async (config, life) => {
  const { log } = life;
  const channels = CHANNELS.filter((one) => one !== 'webhook' || config.webhook !== undefined);
  const sightings = createSightings(channels);
  life.onStop('sightings', sightings.close);
  const socket = openSocket(config, sightings, log);
  life.onStop('socket', socket.close);
  life.readyWhen(() => (socket.isLive() ? undefined : 'the socket is not live'));
  await openReceiver(config, sightings, life);
  const urls = { ingest: config.ingestUrl, latest: config.apiUrl, stream: config.streamUrl };
  const certificates = runEvery({
    name: 'certificates',
    everyMs: CERTIFICATES_EVERY_MS,
    firstMs: 0,
    log,
    run: () => readCertificates(urls, log),
  });
  life.onStop('certificates', certificates.close);
  const probe = createProbe(config, sightings);
  life.onStop('probe', probe.close);
  let failures = 0;
  const failed = (error: unknown) => {
    failures += 1;
    // One line for a failure a second would fill the log during an outage.
    if (failures % 10 === 1) log.warn({ err: error, failures }, 'a canary pill failed');
  };
  // Not one after another: a pill that hangs must not hold up the next measurements.
  const timer = setInterval(() => {
    probe.send(life.signal).then(() => {
      failures = 0;
    }, failed);
  }, config.everyMs);
  life.onStop('timer', () => clearInterval(timer));
});

/** Opens the receiver of webhooks, as soon as the API accepts its endpoint. */
async function openReceiver(
  config: CanaryConfig,
  sightings: Sightings,
  { log, signal, onStop }: Lifecycle,
): Promise<void> {
  const { webhook } = config;
  if (webhook === undefined) return;
  const receiver = await retryForever(() => openWebhook({ ...config, webhook }, sightings, log), {
    firstMs: 500,
    maxMs: 10_000,
    signal,
    onError: (error, attempts) => log.warn({ err: error, attempts }, 'no webhook endpoint yet'),
  });
  onStop('webhook receiver', receiver.close);
}
