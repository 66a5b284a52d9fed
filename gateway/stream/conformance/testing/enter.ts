import { setTimeout as sleep } from 'node:timers/promises';
import { type HandshakeShape, handshakeText, openRaw, type RawClient } from './raw-client.ts';

const TRIES_MAX = 20;
/** PostgreSQL is busy with other tests, or more came in this second than may. */
const COME_BACK = /"accounts_unavailable"|^HTTP\/1\.1 429/;

/**
 * Opens a WebSocket and waits for `welcome`; again where the answer says that it may be tried again.
 * @throws when it is not let in
 */
export async function enter(port: number, handshake: HandshakeShape): Promise<RawClient> {
  let told = '';
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const client = await openRaw(port);
    client.write(handshakeText(handshake));
    await client.until('welcome', () => client.frames.length > 0 || client.socket.closed);
    const first = client.frames[0];
    if (first?.type === 'welcome') return client;
    told = `${client.head().slice(0, 40)} ${JSON.stringify(first)}`;
    client.abort();
    if (!COME_BACK.test(told)) break;
    await sleep(1_000);
  }
  throw new Error(`not let in: ${told}`);
}
