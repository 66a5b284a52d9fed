/** What the receiver counts: one run of the load generator, at so many endpoints. */
export interface ReceiverRun {
  /** Begins the id of every pill; then comes its number. */
  readonly run: string;
  readonly pills: number;
  readonly endpoints: number;
}

/** A message that was answered with success: when it was there whole, and the pills in it. */
export interface AcceptedMessage {
  readonly atMicros: number;
  readonly pills: number;
}

/** What came to one endpoint of a run. Arrays have a place for each pill; times are monotonic µs. */
export interface Arrivals {
  /** First time a pill came, whatever was answered; 0 = never. */
  readonly firstMicros: Float64Array;
  /** First time it came and was answered with success; 0 = never. */
  readonly acceptedMicros: Float64Array;
  /** How often that happened. */
  readonly acceptedTimes: Uint8Array;
  readonly accepted: readonly AcceptedMessage[];
  /** Messages, whatever was answered. */
  readonly attempts: number;
  /** Messages that were answered with success more than once under one id. */
  readonly doubledIds: number;
  /** Pills that came under a second id. */
  readonly renamed: number;
}

/** Counts what comes to one endpoint. */
export interface ArrivalBook {
  /** @returns the pills of this run in the body, 0 where it is another's */
  take(messageId: string, body: string, atMicros: number, isAccepted: boolean): number;
  readonly arrivals: Arrivals;
  /** Pills that were accepted, each once. */
  readonly acceptedPills: number;
}

export function openArrivals({ run, pills }: ReceiverRun): ArrivalBook {
  const firstMicros = new Float64Array(pills);
  const acceptedMicros = new Float64Array(pills);
  const acceptedTimes = new Uint8Array(pills);
  const accepted: AcceptedMessage[] = [];
  const idOf = new Array<string | undefined>(pills);
  const timesOf = new Map<string, number>();
  let attempts = 0;
  let doubledIds = 0;
  let renamed = 0;
  let acceptedPills = 0;
  return {
    take(messageId, body, atMicros, isAccepted) {
      const numbers = pillNumbersIn(body, run).filter((pill) => pill < pills);
      if (numbers.length === 0) return 0;
      attempts += 1;
      for (const pill of numbers) {
        if (firstMicros[pill] === 0) firstMicros[pill] = atMicros;
        idOf[pill] ??= messageId;
        if (idOf[pill] !== messageId) renamed += 1;
        if (!isAccepted) continue;
        if (acceptedMicros[pill] === 0) {
          acceptedMicros[pill] = atMicros;
          acceptedPills += 1;
        }
        acceptedTimes[pill] = Math.min(255, acceptedTimes[pill]! + 1);
      }
      if (isAccepted) {
        accepted.push({ atMicros, pills: numbers.length });
        const times = (timesOf.get(messageId) ?? 0) + 1;
        timesOf.set(messageId, times);
        if (times === 2) doubledIds += 1;
      }
      return numbers.length;
    },
    get arrivals() {
      return {
        ...{ firstMicros, acceptedMicros, acceptedTimes, accepted },
        ...{ attempts, doubledIds, renamed },
      };
    },
    get acceptedPills() {
      return acceptedPills;
    },
  };
}

/** Numbers of a run's pills in a body, as they stand there: without parsing it, which takes longer. */
export function pillNumbersIn(body: string, run: string): number[] {
  const begin = `"id":"${run}-`;
  const numbers: number[] = [];
  for (let at = body.indexOf(begin); at >= 0; at = body.indexOf(begin, at)) {
    at += begin.length;
    const number = Number(body.slice(at, body.indexOf('"', at)));
    if (Number.isSafeInteger(number)) numbers.push(number);
  }
  return numbers;
}
