import type { EffectivePill } from '../../../domain/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { ResumeReason } from '../protocol/resume-reasons.ts';
import { ALL_SYMBOLS } from '../protocol/subscription.ts';

/** A request for pills that the replay buffer has evicted. */
export interface LogRequest {
  /** Last offset of each partition that the client has; names every partition. */
  readonly after: Offsets;
  /** `*` or names: the symbols that can match at all. */
  readonly symbols: readonly string[];
  readonly matches: (pill: EffectivePill) => boolean;
}

/** A request that waits for a reading. */
export interface PendingRequest {
  readonly request: LogRequest;
  refusal: ResumeReason | undefined;
  /** An answered request no longer keeps any pill. */
  isAnswered: boolean;
}

export type PillsByPartition = ReadonlyMap<number, readonly EffectivePill[]>;

interface LogCollectorOptions {
  readonly requests: readonly PendingRequest[];
  /** Start of the replay buffer when the reading begins. */
  readonly starts: Offsets;
  /** Bound on the pills of one request. */
  readonly replayPillsMax: number;
  /** Bound on the pills of all requests together. */
  readonly room: () => number;
}

/** A request and its rank: requests for more are ranked later. */
interface Ranked {
  readonly pending: PendingRequest;
  readonly rank: number;
  found: number;
  /** Kept pills that no request of a lower rank matches. */
  owned: number;
}

/** Pills of one partition, and for each the request of the lowest rank that matches it. */
interface Run {
  readonly pills: EffectivePill[];
  readonly owners: Ranked[];
}

/** Width of `*` in symbols: more than can be named. */
const WILDCARD_WIDTH = 5_000;

/**
 * Collects the pills of a reading that some request matches. A request for more pills than one
 * replay may have is refused alone. If all requests together exceed the room, the widest requests
 * (records missed × symbols) are refused until the others fit: a request gets all of its pills or
 * none.
 *
 * The ranks are fixed, and each pill is owned by the first request that matches it. A refusal from
 * the end of the ranks therefore frees exactly the pills owned there, at once and without checking
 * any other request again: a thousand equal requests are refused in a thousand steps. Pills owned
 * by a request that was refused alone stay until the end of the ranks reaches it, because others
 * may match them.
 */
export class LogCollector {
  readonly #options: LogCollectorOptions;
  readonly #ranked: readonly Ranked[];
  readonly #wildcards: Ranked[];
  readonly #bySymbol = new Map<string, Ranked[]>();
  readonly #read = new Map<number, Run>();
  #evicted = new Map<number, Run>();
  readonly #pills = new Map<number, readonly EffectivePill[]>();
  /** Requests from this rank on were refused for lack of room. */
  #end: number;
  #left: number;
  #count = 0;
  /** Pills without an owner that are not swept out yet: at most a quarter of `#count`. */
  #unowned = 0;

  constructor(options: LogCollectorOptions) {
    this.#options = options;
    this.#ranked = rank(options);
    this.#end = this.#ranked.length;
    this.#left = this.#ranked.length;
    this.#wildcards = this.#ranked.filter(isWildcard);
    for (const one of this.#ranked) {
      if (isWildcard(one)) continue;
      for (const symbol of new Set(one.pending.request.symbols)) {
        const own = this.#bySymbol.get(symbol);
        if (own === undefined) this.#bySymbol.set(symbol, [one]);
        else own.push(one);
      }
    }
  }

  /** Takes a pill from the log. @returns false if no request is left to read for */
  take(pill: EffectivePill): boolean {
    return this.#keep(pill, this.#read);
  }

  /** Takes an evicted pill; during the reading it lies after all pills that are read. */
  takeEvicted(pill: EffectivePill): void {
    this.#keep(pill, this.#evicted);
  }

  /**
   * Joins the pills read and the pills evicted meanwhile, when the log has been read; called once.
   */
  join(): void {
    this.#sweepOut();
    for (const [partition, { pills, owners }] of this.#evicted) {
      const run = runOf(this.#read, partition);
      for (const pill of pills) run.pills.push(pill);
      for (const owner of owners) run.owners.push(owner);
    }
    this.#evicted = this.#read;
  }

  /** The kept pills, ascending in each partition; changes in later turns. */
  get pills(): PillsByPartition {
    for (const [partition, run] of this.#read) this.#pills.set(partition, run.pills);
    return this.#pills;
  }

  /** Pills that match a request that was not refused. */
  get count(): number {
    return this.#count;
  }

  #keep(pill: EffectivePill, runs: Map<number, Run>): boolean {
    const wildcard = this.#firstMatch(this.#wildcards, pill);
    const named = this.#firstMatch(this.#bySymbol.get(pill.symbol) ?? [], pill);
    const isNamed = named !== undefined && (wildcard === undefined || named.rank < wildcard.rank);
    const owner = isNamed ? named : wildcard;
    if (owner !== undefined) {
      const run = runOf(runs, pill.partition);
      run.pills.push(pill);
      run.owners.push(owner);
      owner.owned += 1;
      this.#count += 1;
      this.#makeRoom();
    }
    return this.#left > 0;
  }

  /**
   * Counts the pill for all requests in the list that match, and drops the requests that are done.
   */
  #firstMatch(list: Ranked[], pill: EffectivePill): Ranked | undefined {
    let first: Ranked | undefined;
    let to = 0;
    for (const one of list) {
      if (isDone(one.pending)) continue;
      list[to] = one;
      to += 1;
      if (!isMatch(one.pending.request, pill)) continue;
      one.found += 1;
      if (one.found > this.#options.replayPillsMax) this.#refuse(one, 'too_many_missed');
      else first ??= one;
    }
    list.length = to;
    return first;
  }

  #refuse({ pending }: Ranked, reason: ResumeReason): void {
    if (isDone(pending)) return;
    pending.refusal = reason;
    this.#left -= 1;
  }

  #makeRoom(): void {
    while (this.#count > this.#options.room() && this.#end > 0) {
      this.#end -= 1;
      const last = this.#ranked[this.#end]!;
      this.#refuse(last, 'replay_busy');
      this.#count -= last.owned;
      this.#unowned += last.owned;
    }
    // At a quarter of the kept pills, so that each sweep frees enough to pay for its cost.
    if (this.#unowned * 4 > this.#count) this.#sweepOut();
  }

  #sweepOut(): void {
    this.#unowned = 0;
    for (const runs of [this.#read, this.#evicted]) {
      for (const run of runs.values()) sweep(run, this.#end);
    }
  }
}

const isDone = ({ refusal, isAnswered }: PendingRequest): boolean =>
  refusal !== undefined || isAnswered;

const isWildcard = ({ pending }: Ranked): boolean => pending.request.symbols.includes(ALL_SYMBOLS);

function isMatch({ after, matches }: LogRequest, pill: EffectivePill): boolean {
  return pill.offset > (after.get(pill.partition) ?? Number.POSITIVE_INFINITY) && matches(pill);
}

/** The narrowest request first; equal ones in the order of their arrival. */
function rank({ requests, starts }: LogCollectorOptions): Ranked[] {
  const widthOf = ({ after, symbols }: LogRequest) => {
    let records = 0;
    for (const [partition, offset] of after) {
      records += Math.max(0, (starts.get(partition) ?? 0) - (offset + 1));
    }
    return records * (symbols.includes(ALL_SYMBOLS) ? WILDCARD_WIDTH : symbols.length);
  };
  return requests
    .map((pending) => ({ pending, width: widthOf(pending.request) }))
    .sort((a, b) => a.width - b.width)
    .map(({ pending }, index) => ({ pending, rank: index, found: 0, owned: 0 }));
}

function runOf(runs: Map<number, Run>, partition: number): Run {
  const own = runs.get(partition);
  if (own !== undefined) return own;
  const run: Run = { pills: [], owners: [] };
  runs.set(partition, run);
  return run;
}

/** Drops the pills owned by requests from a rank on. */
function sweep({ pills, owners }: Run, end: number): void {
  let to = 0;
  for (const [at, owner] of owners.entries()) {
    if (owner.rank >= end) continue;
    pills[to] = pills[at]!;
    owners[to] = owner;
    to += 1;
  }
  pills.length = to;
  owners.length = to;
}
