import { expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import { getPort } from '../../testing/ports.ts';
import { createSightings } from './sightings.ts';
import { openWebhook } from './webhook.ts';

test('an API that is away leaves no receiver behind: the next attempt has the same port', async () => {
  const [port, closed] = [await getPort(), await getPort()];
  const config = {
    ...{ ingestUrl: '', streamUrl: '', apiUrl: `http://127.0.0.1:${closed}`, key: 'key' },
    ...{ credential: undefined, symbol: 'TEST:CANARY', everyMs: 1_000, logLevel: 'info' as const },
    ...{ metricsHost: '127.0.0.1', metricsPort: 0, open: [] },
    webhook: { host: '127.0.0.1', port, url: undefined },
  };
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await expect(
      openWebhook(config, createSightings(['webhook']), silentLog),
    ).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    });
  }
});
