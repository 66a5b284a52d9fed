import { Agent, request } from 'undici';
import { nowMicros } from '../../lib/timing/clock.ts';
import { pillJson } from '../../schemas/public-pill.ts';
import type { CanaryConfig } from './config.ts';
import { SEEN_WITHIN_MS, type Sightings } from './sightings.ts';

const AGENT_LIMITS = {
  connections: 8,
  headersTimeout: SEEN_WITHIN_MS,
  bodyTimeout: SEEN_WITHIN_MS,
};

/** Posts canary pills, and reads each from the latest view. */
export function createProbe(
  { ingestUrl, apiUrl, credential, key, symbol }: CanaryConfig,
  sightings: Sightings,
) {
  const dispatcher = new Agent(AGENT_LIMITS);
  const run = `canary-${Date.now().toString(36)}`;
  let posted = 0;
  let epoch: string | undefined;

  const readEpoch = async () => {
    const { statusCode, body } = await request(`${apiUrl}/api/status`, { dispatcher });
    const status = (await body.json()) as { readonly epoch: string };
    if (statusCode !== 200) throw new Error(`GET /api/status answered ${statusCode}.`);
    return status.epoch;
  };
  const post = async (id: string) => {
    const pill = { id, symbol, timestamp: nowMicros(), ...VALUES };
    const { statusCode, headers, body } = await request(`${ingestUrl}/api/pillole`, {
      dispatcher,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
      },
      body: pillJson(pill),
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`Ingest answered ${statusCode}: ${text}`);
    return String(headers['pill-cursor']);
  };
  const readLatest = async (id: string, cursor: string, signal: AbortSignal) => {
    epoch ??= await readEpoch();
    const query = new URLSearchParams({ symbol, at_least: `${epoch}:${cursor}` });
    const { statusCode, body } = await request(`${apiUrl}/api/pills/latest?${query}`, {
      dispatcher,
      headers: { 'x-api-key': key },
      signal,
    });
    const text = await body.text();
    if (statusCode !== 200) {
      // The log may have another epoch.
      epoch = undefined;
      throw new Error(`The latest view answered ${statusCode}: ${text}`);
    }
    // A newer canary pill shows that this one has been visible.
    if ((JSON.parse(text) as { data: { id: string } }).data.id >= id) sightings.see('latest', id);
  };
  return {
    /** Sends one pill. @throws what ingest or the latest view did not do */
    async send(signal: AbortSignal): Promise<void> {
      posted += 1;
      const id = `${run}-${String(posted).padStart(9, '0')}`;
      sightings.begin(id);
      const cursor = await post(id);
      sightings.see('ingest', id);
      await readLatest(id, cursor, signal);
    },
    close: () => dispatcher.destroy(),
  };
}

const VALUES = { gross_spread_percent: 0, market_state: 'open', confidence: 100 };
