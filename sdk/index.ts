import { WebSocket } from 'ws';
import { type Client, type ClientOptions, createClientOn } from './client.ts';

export * from './exports.ts';

/** `ws`, even though newer versions of Node have a WebSocket: only `ws` can be paused. */
class PillSocket extends WebSocket {
  constructor(url: string) {
    super(url, { perMessageDeflate: false, maxPayload: FRAME_BYTES_MAX });
  }
}

/** 1 MiB; frames of the platform have at most 64 KiB. */
const FRAME_BYTES_MAX = 1_048_576;

/** Creates a client. It opens no connection before the first call. */
export function createClient(options: ClientOptions): Client {
  return createClientOn(PillSocket, options);
}
