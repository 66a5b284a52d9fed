import { Kafka, logLevel } from 'kafkajs';

const CONNECT_TIMEOUT_MS = 1_000;
const REQUEST_TIMEOUT_MS = 3_000;

/**
 * True when the broker answers a metadata request and a controller is elected; else throws. The only
 * module of deploy/local that uses the Kafka client.
 */
export async function kafkaAnswers(brokers: string): Promise<boolean> {
  const admin = new Kafka({
    clientId: 'pillole-launcher',
    brokers: brokers.split(','),
    logLevel: logLevel.NOTHING,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    retry: { retries: 0 },
  }).admin();
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    return cluster.brokers.length > 0;
  } finally {
    await admin.disconnect();
  }
}
