/**
 * A WebSocket as browsers have it. `ws` adds a pause, by which a slow reader holds the server back,
 * and an end without a closing handshake.
 */
export interface WebSocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number): void;
  pause?(): void;
  resume?(): void;
  terminate?(): void;
}

export type WebSocketClass = new (url: string) => WebSocketLike;
