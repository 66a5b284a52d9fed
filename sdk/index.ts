import { WebSocket } from 'ws';
import { type Client, type ClientOptions, createClientOn, requireCredential } from './client.ts';
import { type ExportInfo, type ExportOptions, runExport } from './rest/export.ts';
import type { SocketOptions } from './stream/client-socket.ts';

export { type SigningOptions, signRequests } from './auth/sign-requests.ts';
export * from './exports.ts';
export type { ExportFormat, ExportInfo, ExportOptions } from './rest/export.ts';
export { type ReceiptRow, receiptOf, verifyReceipt } from './rest/receipt.ts';
export type { Receipt } from './rest/receipt-type.ts';

/** `ws`, even though newer versions of Node have a WebSocket: only `ws` can be paused. */
class PillSocket extends WebSocket {
  constructor(url: string, { headers = {} }: SocketOptions = {}) {
    super(url, { perMessageDeflate: false, maxPayload: FRAME_BYTES_MAX, headers });
  }
}

/** 1 MiB; frames of the platform have at most 64 KiB. */
const FRAME_BYTES_MAX = 1_048_576;

/** The client on Node, which can write files. */
export interface NodeClient extends Client {
  /**
   * Makes a file with the pills of a range, downloads and checks it; a broken download continues.
   * One call; the key needs the scope `exports`.
   */
  export(options: ExportOptions): Promise<ExportInfo>;
}

/** Creates a client. It opens no connection before the first call. */
export function createClient(options: ClientOptions): NodeClient {
  const { apiUrl, key, auth, fetch = globalThis.fetch } = options;
  return {
    ...createClientOn(PillSocket, options, { sendsHeaders: true }),
    async export(wanted) {
      requireCredential(options);
      return runExport({ apiUrl, credentials: { key, auth }, fetch }, wanted);
    },
  };
}
