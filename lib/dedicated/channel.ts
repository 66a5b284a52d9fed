/** What a supervisor tells a dedicated process, over the channel between the two. */
export type Order =
  /** Answer with a report; `id` comes back. */
  | { readonly order: 'report'; readonly id: number }
  /** Close every socket with this error, then stop. */
  | { readonly order: 'end'; readonly code: EndCode; readonly message: string };

/** Why all sockets of a dedicated process end. */
export type EndCode = 'dedicated_removed' | 'tier_too_low' | 'subscription_ended';

/** What a dedicated process answers. */
export interface Report {
  readonly id: number;
  /** undefined = it serves. */
  readonly notReady: string | undefined;
  readonly connections: number;
  readonly queueBytes: number;
  /** Age of the oldest frame that waits, over all sockets. */
  readonly queueMs: number;
  /** Last offset of each partition that was handed to the sockets. */
  readonly offsets: readonly (readonly [partition: number, offset: number])[];
}

/** Both ends are of one build: only what is no message of ours at all is refused. */
export function isOrder(message: unknown): message is Order {
  return typeof (message as { order?: unknown } | null)?.order === 'string';
}

export function isReport(message: unknown): message is Report {
  return Array.isArray((message as { offsets?: unknown } | null)?.offsets);
}
