import { setTimeout as sleep } from 'node:timers/promises';
import { type HandshakeShape, handshakeText, openRaw, type RawClient } from './raw-client.ts';

const TRIES_MAX = 20;
/** Closes due to a PostgreSQL that is busy with other tests, or to the handshake rate limit. */
const RETRYABLE = /"accounts_unavailable"|^HTTP\/1\.1 429/;

/**
 * Opens a WebSocket and waits for `welcome`; retries if the answer permits.
 * @throws when the connection is refused
 */
export async function enter(port: number, handshake: HandshakeShape): Promise<RawClient> {
  let answer = '';
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const client = await openRaw(port);
    client.write(handshakeText(handshake));
    await client.until('welcome', () => client.frames.length > 0 || client.socket.closed);
    const first = client.frames[0];
    if (first?.type === 'welcome') return client;
    answer = `${client.head().slice(0, 40)} ${JSON.stringify(first)}`;
    client.abort();
    if (!RETRYABLE.test(answer)) break;
    await sleep(1_000);
  }
  throw new Error(`connection refused: ${answer}`);
}
