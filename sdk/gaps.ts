import { FILL_LIMITS, fillGap, fillPath, withLimit } from './fill.ts';
import type { GapFrame } from './frames.ts';
import type { GapItem } from './items.ts';
import type { Ledger } from './ledger.ts';
import type { Pill } from './pill.ts';
import { parseCursor } from './position.ts';
import type { Rest } from './rest.ts';

/** A break of one symbol that this client has seen by itself. */
export interface Break {
  readonly symbol: string;
  readonly after: string | null;
  readonly until: string;
}

export interface GapOptions {
  readonly rest: Rest;
  readonly ledger: Ledger;
  readonly isFilling: boolean;
  /** Whether the stream would have brought it. */
  readonly wants: (pill: Pill) => boolean;
  /** Hands over a pill of a fill. */
  readonly onPill: (pill: Pill) => void;
  readonly onGap: (gap: GapItem) => void;
  readonly room: () => Promise<void>;
  /** Ends a fill that begins now. */
  readonly signal: () => AbortSignal;
}

/** Tells gaps, after it has tried to fill them. */
export interface Gaps {
  /** One that the server has told. */
  told(frame: GapFrame): Promise<void>;
  /** Breaks that have one reason; more than can be filled are told as one. */
  seen(breaks: readonly Break[], reason: string, epoch: string): Promise<void>;
  /** Pills may be missing, and nobody can say which. */
  unknown(symbols: readonly string[], reason: string): void;
}

export function createGaps(options: GapOptions): Gaps {
  const { rest, ledger, isFilling, wants, onPill, onGap, room, signal } = options;

  const tell = (gap: Omit<GapItem, 'type'>) => onGap({ type: 'gap', ...gap });

  /** Hands over what history has of it, but nothing that an earlier connection did. */
  const fill = async (path: string, until: string | null, after: string | null) => {
    let pills = 0;
    const afterOffset = parseCursor(after ?? '')?.offset ?? -1;
    const error = await fillGap({
      ...{ rest, path, until, room, signal: signal() },
      onPill(pill) {
        const offset = parseCursor(pill.cursor)?.offset ?? -1;
        if (offset <= Math.max(afterOffset, ledger.handedBefore(pill.symbol))) return;
        if (!wants(pill)) return;
        pills += 1;
        onPill({ ...pill, replayed: true });
      },
    });
    return { pills, error, filled: error === undefined };
  };

  const fillBreak = async ({ symbol, after, until }: Break, reason: string, epoch: string) => {
    const from = parseCursor(after ?? '')?.offset ?? -1;
    const isAhead = (parseCursor(until)?.offset ?? 0) > from;
    const result = isAhead
      ? await fill(fillPath(symbol, epoch, after, until), until, after)
      : NOT_FILLED;
    tell({ symbols: [symbol], after, until, reason, ...result });
  };

  return {
    async told({ symbols, after, until, reason, fill: path }) {
      const result =
        isFilling && typeof path === 'string'
          ? await fill(withLimit(path), null, after)
          : NOT_FILLED;
      tell({ symbols, after, until, reason, ...result });
    },
    async seen(breaks, reason, epoch) {
      if (breaks.length === 0) return;
      if (isFilling && breaks.length <= FILL_LIMITS.symbolsMax) {
        for (const one of breaks) await fillBreak(one, reason, epoch);
        return;
      }
      const symbols = breaks.map(({ symbol }) => symbol);
      const [only] = breaks;
      const { after, until } = breaks.length === 1 ? only! : { after: null, until: null };
      tell({ symbols, after, until, reason, ...NOT_FILLED });
    },
    unknown(symbols, reason) {
      tell({ symbols, after: null, until: null, reason, ...NOT_FILLED });
    },
  };
}

const NOT_FILLED = { pills: 0, filled: false, error: undefined } as const;
