import { WebSocket } from 'ws';
import { type Client, type ClientOptions, createClientOn, requireKey } from './client.ts';
import { type ExportInfo, type ExportOptions, runExport } from './rest/export.ts';

export * from './exports.ts';
export type { ExportFormat, ExportInfo, ExportOptions } from './rest/export.ts';
export { type ReceiptRow, receiptOf, verifyReceipt } from './rest/receipt.ts';
export type { Receipt } from './rest/receipt-type.ts';

/** `ws`, even though newer versions of Node have a WebSocket: only `ws` can be paused. */
class PillSocket extends WebSocket {
  constructor(url: string) {
    super(url, { perMessageDeflate: false, maxPayload: FRAME_BYTES_MAX });
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
  const { apiUrl, key, fetch = globalThis.fetch } = options;
  return {
    ...createClientOn(PillSocket, options),
    async export(wanted) {
      requireKey(options);
      return runExport({ apiUrl, key, fetch }, wanted);
    },
  };
}
