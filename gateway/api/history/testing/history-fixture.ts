import { createPartitionJudge, type EffectivePill } from '../../../../domain/order/judge.ts';
import type { PillRecord } from '../../../../schemas/pill.ts';
import type { createNamespace } from '../../../../testing/namespace.ts';
import { waitFor } from '../../../../testing/wait.ts';
import { type Answer, openPlatform, type Platform } from '../../testing/api-platform.ts';

/** Query parameters, or a whole path. */
export type Query = Readonly<Record<string, string | number>> | string;

/** A platform, and a model of the pills in its log. */
export interface HistoryFixture extends Omit<Platform, 'write' | 'ask'> {
  /** Writes pills in order, like a direct producer; the model judges the same records. */
  write(pills: readonly PillRecord[]): Promise<void>;
  /** The pills with effect so far, each identity once, in the order of history. */
  pills(): EffectivePill[];
  ask(query: Query, headers?: Record<string, string>, key?: string): Promise<Answer>;
  /** Gets all pages, beginning with the first. */
  pages(query: Query, key?: string): Promise<Answer[]>;
}

export async function openHistoryFixture(
  env: Readonly<Record<string, string>> = {},
  settings: Parameters<typeof createNamespace>[0] = {},
): Promise<HistoryFixture> {
  const platform = await openPlatform({ env, settings });
  const { settings: topic } = platform.namespace;
  const judges = Array.from({ length: topic.partitions }, (_, partition) =>
    createPartitionJudge({
      partition,
      settings: topic,
      symbols: new Map(),
      compareContent: false,
    }),
  );
  const effective = new Map<string, EffectivePill>();

  const ask: HistoryFixture['ask'] = (query, headers = {}, key = platform.account.key) =>
    platform.ask(typeof query === 'string' ? query : `/api/pills?${textOf(query)}`, {
      headers,
      key,
    });
  return {
    ...platform,
    ask,
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
        const path = next;
        // On a busy machine the accounts may not answer in time.
        const page: Answer = await waitFor('a page', async () => {
          const answer = await ask(path, {}, key);
          return answer.body?.code !== 'accounts_unavailable' && answer;
        });
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
