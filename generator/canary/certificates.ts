import { connect } from 'node:tls';
import type { Log } from '../../lib/log/log.ts';
import { createGauge } from '../../lib/metrics/metrics.ts';

const expiry = createGauge({
  name: 'pillole_canary_certificate_expiry_timestamp_seconds',
  help: 'When the certificate of an address ends, as a TLS handshake shows it; only https and wss.',
  labelNames: ['channel'] as const,
});

const CONNECT_MAX_MS = 5_000;

/** Reads when the certificates of the public addresses end. @param urls by channel */
export async function readCertificates(
  urls: Readonly<Partial<Record<'ingest' | 'latest' | 'stream', string>>>,
  log: Log,
): Promise<void> {
  for (const [channel, text] of Object.entries(urls)) {
    const url = new URL(text);
    if (url.protocol !== 'https:' && url.protocol !== 'wss:') continue;
    try {
      expiry.set({ channel }, (await validTo(url)) / 1_000);
    } catch (error) {
      log.warn({ err: error, channel }, 'the certificate of an address cannot be read');
    }
  }
}

/** @returns Unix ms. An expired or unknown certificate is read as well. */
function validTo({ hostname, port }: URL): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = {
      host: hostname,
      port: Number(port || 443),
      servername: hostname,
      rejectUnauthorized: false,
      timeout: CONNECT_MAX_MS,
    };
    const socket = connect(options, () => {
      resolve(Date.parse(socket.getPeerCertificate().valid_to));
      socket.destroy();
    });
    socket.once('error', reject);
    socket.once('timeout', () => socket.destroy(new Error(`No answer in ${CONNECT_MAX_MS} ms.`)));
  });
}
