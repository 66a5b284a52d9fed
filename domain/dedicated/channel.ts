/** A command of the supervisor to a dedicated process, over their IPC channel. */
export type SupervisorCommand =
  /** Answer with a report that repeats `id`. */
  | { readonly command: 'report'; readonly id: number }
  /** Close every socket with this error, then stop. */
  | { readonly command: 'end'; readonly code: EndCode; readonly message: string };

/** Why all sockets of a dedicated process end. */
export type EndCode =
  | 'dedicated_removed'
  | 'tier_too_low'
  | 'subscription_ended'
  | 'account_suspended';

/** The answer of a dedicated process. */
export interface ProcessReport {
  readonly id: number;
  /** undefined = ready. */
  readonly notReady: string | undefined;
  readonly connections: number;
  readonly queueBytes: number;
  /** Age of the oldest waiting frame, over all sockets. */
  readonly queueMs: number;
  /** Last offset of each partition that was sent to the sockets. */
  readonly offsets: readonly (readonly [partition: number, offset: number])[];
}

/** Both ends come from the same build, so only foreign messages are refused. */
export function isSupervisorCommand(message: unknown): message is SupervisorCommand {
  return typeof (message as { command?: unknown } | null)?.command === 'string';
}

export function isProcessReport(message: unknown): message is ProcessReport {
  return Array.isArray((message as { offsets?: unknown } | null)?.offsets);
}
