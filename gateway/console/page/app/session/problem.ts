/** A refusal of the API, or no answer at all. */
export class RequestFailed extends Error {
  readonly status: number;
  readonly code: string;
  readonly detail: string | undefined;
  readonly requestId: string | undefined;
  /** Faults of the body, by JSON pointer. */
  readonly faults: readonly Fault[];

  constructor(of: {
    readonly status?: number;
    readonly code: string;
    readonly title: string;
    readonly detail?: string | undefined;
    readonly requestId?: string | undefined;
    readonly faults?: readonly Fault[];
  }) {
    super(of.title);
    this.status = of.status ?? 0;
    this.code = of.code;
    this.detail = of.detail;
    this.requestId = of.requestId;
    this.faults = of.faults ?? [];
  }

  /** Whether the same request may succeed soon: no answer, too many requests, or a fault of ours. */
  get mayPass(): boolean {
    if (this.code === 'daily_quota_exceeded') return false;
    return this.code === 'unreachable' || this.status === 429 || this.status >= 500;
  }
}

/** Refusals that another plan ends. */
const OF_PLANS = ['subscription_required', 'tier_too_low'];

/** Whether a plan, or a higher one, is what is missing. @param code of a refusal */
export const isOfPlans = (code: string): boolean => OF_PLANS.includes(code);

interface Fault {
  readonly pointer: string;
  readonly detail: string;
}

interface ProblemBody {
  readonly code?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly remedy?: string;
  readonly request_id?: string;
  readonly errors?: readonly { readonly pointer?: string; readonly detail?: string }[];
}

/** Reads the refusal of an answer. */
export async function problemOf(answer: Response): Promise<RequestFailed> {
  const body = (await answer.json().catch(() => ({}))) as ProblemBody;
  const faults = (body.errors ?? []).flatMap(({ pointer = '', detail }) =>
    detail === undefined ? [] : [{ pointer, detail }],
  );
  return new RequestFailed({
    status: answer.status,
    code: body.code ?? `http_${answer.status}`,
    title: body.title ?? `HTTP ${answer.status}`,
    detail: body.detail ?? body.remedy,
    requestId: body.request_id,
    faults,
  });
}

/** For a request without an answer. */
export function unreachable(): RequestFailed {
  const detail = 'Check the connection, then try again.';
  return new RequestFailed({ code: 'unreachable', title: 'The platform does not answer', detail });
}

/** Whatever was thrown, as a failure that can be shown. */
export function asFailure(error: unknown): RequestFailed {
  if (error instanceof RequestFailed) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new RequestFailed({ code: 'fault', title: 'The console failed', detail });
}
