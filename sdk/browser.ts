import { type Client, type ClientOptions, createClientOn } from './client.ts';
import type { WebSocketClass } from './stream/client-socket.ts';

export * from './exports.ts';

/** Creates a client for browsers: without dependencies, with the global WebSocket. */
export function createClient(options: ClientOptions): Client {
  const { WebSocket } = globalThis as { WebSocket?: WebSocketClass };
  return createClientOn(WebSocket, options, { sendsHeaders: false });
}
