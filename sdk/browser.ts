import { type Client, type ClientOptions, createClientOn } from './client.ts';
import type { WebSocketClass } from './web-socket.ts';

export { PilloleError } from './error.ts';
export { REST_LIMITS } from './rest.ts';
export { STREAM_LIMITS } from './stream.ts';
export type * from './types.ts';
export { challengeAnswer, verifyWebhook, WebhookVerificationError } from './webhook.ts';

/** Creates a client for browsers: no dependencies, the global WebSocket. */
export function createClient(options: ClientOptions): Client {
  const { WebSocket: webSocket } = globalThis as { WebSocket?: WebSocketClass };
  return createClientOn({ webSocket }, options);
}
