import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { Pill } from '../schemas/pill.ts';
import { pillJson } from '../schemas/public-pill.ts';

/** Posts pills like a careful generator. */
export interface Poster {
  /** Posts with the same id until the answer is 200. @returns the cursor @throws Error on 4xx */
  post(pill: Pill): Promise<string>;
  close(): Promise<void>;
}

/** A poster that retries through restarts of ingest and outages of the log. */
export function createPoster(ingest: string, retriesMs = 60_000): Poster {
  const agent = new Agent({ connections: 16, headersTimeout: 5_000, bodyTimeout: 5_000 });
  return {
    async post(pill) {
      const deadline = performance.now() + retriesMs;
      for (;;) {
        let outcome: string;
        try {
          const { statusCode, headers, body } = await request(`${ingest}/api/pillole`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: pillJson(pill),
            dispatcher: agent,
          });
          const text = await body.text();
          if (statusCode === 200) return String(headers['pill-cursor']);
          outcome = `${statusCode} ${text}`;
        } catch (error) {
          outcome = String(error);
        }
        const isFinal = outcome.startsWith('4');
        if (isFinal || performance.now() > deadline) throw new Error(`Not accepted: ${outcome}`);
        await sleep(100);
      }
    },
    close: () => agent.close(),
  };
}
