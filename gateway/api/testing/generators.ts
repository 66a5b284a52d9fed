import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { request } from 'undici';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { startIngest, type TestIngest } from '../../../testing/ingest-process.ts';
import { makePill } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openPlatform, type Platform } from './api-platform.ts';

export const tokenOf = (name: string) => `gen_${name.padEnd(40, 'x')}`;

/** A platform and an ingest with credentials for some generators. */
export type Generators = Awaited<ReturnType<typeof openGenerators>>;

/** @param names of the generators, whose tokens `tokenOf` gives */
export async function openGenerators(names: readonly string[]) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-generators-'));
  const file = path.join(folder, 'generators.json');
  const lines = names.map((name) => {
    const sha256 = createHash('sha256').update(tokenOf(name)).digest('hex');
    return JSON.stringify({ name, sha256 });
  });
  writeFileSync(file, lines.join('\n'));
  const env = { INGEST_CREDENTIALS_FILE: file };
  const platform: Platform = await openPlatform({ env });
  let ingest: TestIngest;

  const restartIngest = async () => {
    ingest = await startIngest(platform.namespace, env);
    await ingest.process.ready();
  };
  const post = async (
    name: string,
    body: unknown,
    to = '',
    headers: Record<string, string> = {},
  ) => {
    const answer = await request(`${ingest.url}/api/pillole${to}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${tokenOf(name)}`,
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, headers: answer.headers, text, body: JSON.parse(text) };
  };
  const close = async () => {
    await ingest?.process.stop();
    await platform.close();
    rmSync(folder, { recursive: true });
  };
  await restartIngest().catch(async (error) => {
    await close();
    throw error;
  });
  return {
    platform,
    /** The ingest that runs now. */
    ingest: () => ingest,
    /** Starts ingest after it was stopped or killed. */
    restartIngest,
    post,
    /** Repeats a post that the log, on a busy machine, did not acknowledge in time. */
    accepted: (name: string, pill: object) =>
      waitFor('ok', async () => {
        const answer = await post(name, pill);
        return answer.status === 200 ? answer : undefined;
      }),
    close,
  };
}

/** A pill as it is sent; `fields` replace its values. */
export function pillOf(fields: object = {}) {
  const { id, timestamp, symbol, gross_spread_percent, market_state, confidence } = makePill();
  const sent = { id, symbol, gross_spread_percent, market_state, confidence };
  return { ...sent, timestamp: formatTimestamp(timestamp), ...fields };
}
