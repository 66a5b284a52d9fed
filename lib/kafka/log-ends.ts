import type { Admin } from 'kafkajs';
import { type KafkaClient, openKafka } from './client.ts';
import { boundsOf } from './topics.ts';

/** Where a topic ends, asked over one connection that stays open. */
export interface LogEnds {
  /** Offset of the next record of each partition; undefined while the log does not answer. */
  ask(): Promise<ReadonlyMap<number, number> | undefined>;
  close(): Promise<void>;
}

const ANSWER_MAX_MS = 1_000;

/**
 * It connects when it is asked first, and again after every failure.
 * @param answerMaxMs of one request
 */
export function openLogEnds(
  client: KafkaClient,
  topic: string,
  answerMaxMs = ANSWER_MAX_MS,
): LogEnds {
  let admin: Admin | undefined;
  return {
    async ask() {
      try {
        if (admin === undefined) {
          const opened = openKafka(client, {
            requestTimeoutMs: answerMaxMs,
            retry: { retries: 0, initialRetryTime: 100, maxRetryTime: 100 },
          }).admin();
          await opened.connect();
          admin = opened;
        }
        const bounds = await boundsOf(admin, topic);
        return new Map([...bounds].map(([partition, { high }]) => [partition, high]));
      } catch {
        await admin?.disconnect().catch(() => undefined);
        admin = undefined;
        return undefined;
      }
    },
    async close() {
      await admin?.disconnect().catch(() => undefined);
    },
  };
}
