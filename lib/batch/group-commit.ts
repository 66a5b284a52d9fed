export interface GroupCommitOptions<Item, Result> {
  /**
   * Commits one group, its items in the order of arrival; the next group leaves when this one has
   * settled. A rejection rejects every caller of the group, so retries, if any, belong in this
   * function.
   * @param signal aborts when the deadline of `close` has passed
   * @returns a result for each item, in their order; of pushed items it is ignored
   */
  commit(items: readonly Item[], signal: AbortSignal): Promise<readonly Result[]>;
  /** Bounds of one group; a single item beyond `sizeMax` goes alone. Default: none. */
  readonly itemsMax?: number;
  readonly sizeMax?: number;
  /** Size of one item, in bytes, rows, … Default: 1. */
  sizeOf?(item: Item): number;
  /**
   * A group waits this long for more items, counted from its first item or from the end of the
   * previous commit. Default: 0, so that items of one turn of the event loop share a group.
   */
  readonly lingerMs?: number;
  /** A group of this size does not linger, nor does a group of `itemsMax`. Default: `sizeMax`. */
  readonly lingerSizeMax?: number;
  /** Least time between the beginnings of two commits. Default: 0. */
  readonly intervalMs?: number;
}

/** The item was not committed: the group was closed, or `drop` took the item out. */
export class GroupClosedError extends Error {
  override readonly name = 'GroupClosedError';
}

interface Entry<Item, Result> {
  readonly item: Item;
  readonly size: number;
  readonly resolve?: (result: Result) => void;
  readonly reject?: (error: unknown) => void;
}

const NO_BOUND = Number.POSITIVE_INFINITY;

/** One statement or request in flight; items that arrive meanwhile share the next one. */
export class GroupCommit<Item, Result = void> {
  readonly #options: GroupCommitOptions<Item, Result>;
  readonly #deadline = new AbortController();
  #waiting: Entry<Item, Result>[] = [];
  #waitingSize = 0;
  #inFlight: readonly Entry<Item, Result>[] = [];
  #inFlightSize = 0;
  /** When the waiting group began to linger, and when the last commit began. */
  #lingersFromMs = 0;
  #beganAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = NO_BOUND;
  #immediate: NodeJS.Immediate | undefined;
  /** Set while `close` waits for the last commit. */
  #onDrained: (() => void) | undefined;
  #isClosed = false;

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options;
  }

  /** @returns the item's own result @throws what `commit` throws, or GroupClosedError */
  add(item: Item): Promise<Result> {
    if (this.#isClosed) return Promise.reject(new GroupClosedError('The group is closed.'));
    return new Promise((resolve, reject) => this.#enter(item, { resolve, reject }));
  }

  /** Adds an item whose result no caller needs; after the close it is ignored. */
  push(item: Item): void {
    if (!this.#isClosed) this.#enter(item, {});
  }

  /** Takes waiting items out, and rejects their callers. @returns the items */
  drop(
    test: (item: Item) => boolean,
    reason: Error = new GroupClosedError('The item was dropped.'),
  ): readonly Item[] {
    const [dropped, kept]: Entry<Item, Result>[][] = [[], []];
    for (const entry of this.#waiting) (test(entry.item) ? dropped! : kept!).push(entry);
    this.#waiting = kept!;
    for (const { size, reject } of dropped!) {
      this.#waitingSize -= size;
      reject?.(reason);
    }
    return dropped!.map(({ item }) => item);
  }

  /** Items that wait, without items in flight. */
  get waitingItems(): number {
    return this.#waiting.length;
  }

  get waitingSize(): number {
    return this.#waitingSize;
  }

  /** Items that wait or are in flight. */
  get heldItems(): number {
    return this.#waiting.length + this.#inFlight.length;
  }

  get heldSize(): number {
    return this.#waitingSize + this.#inFlightSize;
  }

  /**
   * Commits held items, and items that arrive meanwhile, without lingering. At the deadline it
   * aborts the commit in flight, rejects the items that still wait, and resolves without waiting
   * for either.
   */
  async close(deadlineMs?: number): Promise<void> {
    if (this.heldItems > 0) {
      let late: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#onDrained = resolve;
        if (deadlineMs !== undefined) late = setTimeout(resolve, deadlineMs);
        this.#leaveWhenDue();
      });
      clearTimeout(late);
    }
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    const reason = new GroupClosedError('The group is closed.');
    this.#deadline.abort(reason);
    this.drop(() => true, reason);
  }

  #enter(item: Item, callbacks: Pick<Entry<Item, Result>, 'resolve' | 'reject'>): void {
    const size = this.#options.sizeOf?.(item) ?? 1;
    if (this.heldItems === 0) this.#lingersFromMs = performance.now();
    this.#waiting.push({ item, size, ...callbacks });
    this.#waitingSize += size;
    this.#leaveWhenDue();
  }

  #leaveWhenDue(): void {
    const { itemsMax = NO_BOUND, sizeMax = NO_BOUND, lingerMs = 0, intervalMs = 0 } = this.#options;
    const { lingerSizeMax = sizeMax } = this.#options;
    if (this.#inFlight.length > 0 || this.#immediate !== undefined || this.waitingItems === 0)
      return;
    const isFull = this.waitingItems >= itemsMax || this.#waitingSize >= lingerSizeMax;
    const lingers = !isFull && this.#onDrained === undefined;
    const nowMs = performance.now();
    const lingersUntilMs = lingers ? this.#lingersFromMs + lingerMs : nowMs;
    const dueMs = Math.max(lingersUntilMs, this.#beganAtMs + intervalMs, nowMs);
    if (dueMs >= this.#timerAtMs) return;
    clearTimeout(this.#timer);
    this.#timerAtMs = dueMs;
    const leave = () => this.#leave();
    if (dueMs > nowMs) this.#timer = setTimeout(leave, dueMs - nowMs);
    else this.#immediate = setImmediate(leave);
  }

  #leave(): void {
    this.#timerAtMs = NO_BOUND;
    this.#immediate = undefined;
    this.#takeGroup();
    if (this.#inFlight.length > 0) void this.#commit(this.#inFlight);
    else this.#onDrained?.();
  }

  #takeGroup(): void {
    const { itemsMax = NO_BOUND, sizeMax = NO_BOUND } = this.#options;
    let size = 0;
    let count = 0;
    for (const entry of this.#waiting) {
      if (count > 0 && (count >= itemsMax || size + entry.size > sizeMax)) break;
      size += entry.size;
      count += 1;
    }
    this.#waitingSize -= size;
    this.#inFlightSize = size;
    this.#inFlight = this.#waiting.splice(0, count);
  }

  async #commit(group: readonly Entry<Item, Result>[]): Promise<void> {
    this.#beganAtMs = performance.now();
    try {
      const items = group.map(({ item }) => item);
      const results = await this.#options.commit(items, this.#deadline.signal);
      for (const [at, { resolve }] of group.entries()) resolve?.(results[at]!);
    } catch (error) {
      for (const { reject } of group) reject?.(error);
    }
    this.#inFlight = [];
    this.#inFlightSize = 0;
    this.#lingersFromMs = performance.now();
    if (this.waitingItems > 0) this.#leaveWhenDue();
    else this.#onDrained?.();
  }
}
