/** A refused or rejected pill, as GET /api/generator/rejected lists it. */
export interface RefusedPill {
  /** ISO 8601. */
  readonly at: string;
  /** Unique. */
  readonly origin: string;
  readonly channel: 'http' | 'log';
  readonly source: string;
  readonly code: string;
  readonly fault: string;
  /** Why, in words. */
  readonly reason: string;
  /** What was sent, cut; not always JSON. */
  readonly body: string;
}

/** The value of a member of this name, also in a body that was cut within it. */
const SYMBOL_MEMBER = /"symbol"\s*:\s*"((?:[^"\\]|\\.)*)/s;

/** The symbol in a body; undefined if there is none, e.g. in a record of the log, which is Avro. */
export function symbolIn({ body, channel }: Pick<RefusedPill, 'body' | 'channel'>) {
  if (channel === 'log') return undefined;
  const whole = parsed(body);
  if (whole !== undefined) {
    const { symbol } = (whole ?? {}) as { readonly symbol?: unknown };
    return typeof symbol === 'string' ? symbol : undefined;
  }
  const text = SYMBOL_MEMBER.exec(body)?.[1];
  return text === undefined ? undefined : String(parsed(`"${text}"`) ?? text);
}

/** Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Says that a list is a sample, and of how many pills.
 * @param count of all refused and rejected ones, as of a moment that may be earlier than the sample's
 */
export function describeSample(shown: number, count: number): string {
  const all = count.toLocaleString('en');
  if (shown === 0 && count === 0) return 'No pill was refused or rejected.';
  if (shown === 0) return `None of the ${all} was kept as a sample.`;
  if (shown > count) return `The newest ${shown}; the counts above follow within seconds.`;
  return `A sample: the newest ${shown} of ${all}. Ingest keeps up to 10 of a reason in five minutes.`;
}
