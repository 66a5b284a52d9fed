import { createPartitionJudge, type EffectivePill } from '../../../../lib/order/judge.ts';
import type { createNamespace } from '../../../../lib/testing/namespace.ts';
import type { PillRecord } from '../../../../schemas/pill.ts';
import { type Answer, openPlatform, type Platform } from '../../testing/platform.ts';

/** A parameter by parameter, or a path with its own. */
export type Query = Readonly<Record<string, string | number>> | string;

/** A platform, and what its log should come to. */
export interface World extends Omit<Platform, 'write' | 'ask'> {
  /** Writes, one after another, as direct producers do; the model judges the same records. */
  write(pills: readonly PillRecord[]): Promise<void>;
  /** Effective pills of the log so far, each identity once, in the order of history. */
  pills(): EffectivePill[];
  ask(query: Query, headers?: Record<string, string>, key?: string): Promise<Answer>;
  /** All pages from a first one on. */
  pages(query: Query, key?: string): Promise<Answer[]>;
}

export async function openWorld(
  env: Readonly<Record<string, string>> = {},
  settings: Parameters<typeof createNamespace>[0] = {},
): Promise<World> {
  const platform = await openPlatform({ env, settings });
  const { settings: topic } = platform.namespace;
  const judges = Array.from({ length: topic.partitions }, (_, partition) =>
    createPartitionJudge({
      ...{ partition, settings: topic, symbols: new Map(), compareContent: false },
    }),
  );
  const effective = new Map<string, EffectivePill>();

  const ask: World['ask'] = (query, headers = {}, key = platform.account.key) =>
    platform.ask(typeof query === 'string' ? query : `/api/pills?${textOf(query)}`, {
      ...{ headers, key },
    });
  return {
    ...{ ...platform, ask },
    async write(pills) {
      const acks = await platform.write(pills);
      for (const [at, { partition, offset, appendedAt }] of acks.entries()) {
        const record = pills[at]!;
        const key = Buffer.from(record.symbol);
        const verdict = judges[partition]!.judge(record, key, offset, appendedAt);
        if (verdict.kind !== 'effect') continue;
        const { pill } = verdict;
        const identity = `${pill.symbol} ${pill.timestamp} ${pill.id}`;
        if (!effective.has(identity)) effective.set(identity, pill);
      }
    },
    pills: () =>
      [...effective.values()].sort((a, b) => a.partition - b.partition || a.offset - b.offset),
    async pages(query, key) {
      const pages: Answer[] = [];
      for (let next: Query | null = query; next !== null; ) {
        const page: Answer = await ask(next, {}, key);
        if (page.status !== 200) throw new Error(`${page.status} ${page.text}`);
        pages.push(page);
        next = page.body.next;
      }
      return pages;
    },
  };
}

function textOf(query: Readonly<Record<string, string | number>>): string {
  const entries = Object.entries(query).map(([name, value]): [string, string] => [
    name,
    String(value),
  ]);
  return String(new URLSearchParams(entries));
}
