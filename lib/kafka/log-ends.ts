import type { Admin } from 'kafkajs';
import { type KafkaClient, openKafka } from './kafka-client.ts';
import { boundsOf } from './topics.ts';

export type LogEnds = ReturnType<typeof openLogEnds>;

const ANSWER_MAX_MS = 1_000;

/**
 * Reads the end of a topic over one connection, which is opened at the first request, and again after
 * every failure. @param answerMaxMs time-out of one request
 */
export function openLogEnds(client: KafkaClient, topic: string, answerMaxMs = ANSWER_MAX_MS) {
  let admin: Admin | undefined;
  return {
    /** Offset of the next record of each partition; undefined while the log does not answer. */
    async ask(): Promise<ReadonlyMap<number, number> | undefined> {
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
    async close(): Promise<void> {
      await admin?.disconnect().catch(() => undefined);
    },
  };
}
