import { WebSocket } from 'ws';
import { type Client, type ClientOptions, createClientOn } from './client.ts';

export { PilloleError } from './error.ts';
export { REST_LIMITS } from './rest.ts';
export { STREAM_LIMITS } from './stream.ts';
export type * from './types.ts';
export { challengeAnswer, verifyWebhook, WebhookVerificationError } from './webhook.ts';

/** `ws`, also where Node has a WebSocket of its own: only `ws` can be paused. */
class PillSocket extends WebSocket {
  constructor(url: string) {
    super(url, { perMessageDeflate: false, maxPayload: FRAME_BYTES_MAX });
  }
}

/** The platform's frames are 64 KiB at the most. */
const FRAME_BYTES_MAX = 1_048_576;

/** Creates a client. It opens nothing until it is asked something. */
export function createClient(options: ClientOptions): Client {
  return createClientOn({ webSocket: PillSocket }, options);
}
