import getPort from 'get-port';
import { request } from 'undici';
import { createPartitionJudge, type EffectivePill } from '../../../../lib/order/judge.ts';
import type { Database } from '../../../../lib/postgres/database.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
} from '../../../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../../lib/testing/namespace.ts';
import { openPillWriter, type PillWriter } from '../../../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../../../lib/testing/process.ts';
import { waitFor } from '../../../../lib/testing/wait.ts';
import type { PillRecord } from '../../../../schemas/pill.ts';
import { formatPosition } from '../../../../schemas/position.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: pages and problems; tests look at members
  readonly body: any;
}

/** Log, latest view, sink and API of a test's own, and what the log should come to. */
export interface World {
  readonly namespace: Namespace;
  readonly db: Database;
  readonly account: TestAccount;
  readonly base: string;
  readonly sink: TestProcess;
  /** Writes, one after another, as direct producers do; the model judges the same records. */
  write(pills: readonly PillRecord[]): Promise<void>;
  /** Effective pills of the log so far, each identity once, in the order of history. */
  pills(): EffectivePill[];
  /** Position of the end of the log so far. */
  end(): string;
  ask(
    query: Record<string, string | number> | string,
    headers?: Record<string, string>,
    key?: string,
  ): Promise<Answer>;
  /** All pages from a first one on. */
  pages(query: Record<string, string | number> | string, key?: string): Promise<Answer[]>;
  /** Waits until the sink has stored all that was written. */
  stored(): Promise<void>;
  close(): Promise<void>;
}

export async function openWorld(
  env: Readonly<Record<string, string>> = {},
  settings: Parameters<typeof createNamespace>[0] = {},
): Promise<World> {
  const namespace = await createNamespace(settings);
  const writer: PillWriter = await openPillWriter(namespace);
  const db = openTestDatabase(namespace);
  const account = await createTestAccount(db, namespace, { tier: 'institutional' });
  const port = await getPort();
  const base = `http://127.0.0.1:${port}`;
  const latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  const sink = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
  const api = await startProcess('gateway/api/main.js', [], {
    ...{ ...namespace.env, API_PORT: String(port), ...env },
  });
  await Promise.all([latest.ready(), sink.ready(), api.ready()]);

  const { settings: topic } = namespace;
  const judges = Array.from({ length: topic.partitions }, (_, partition) =>
    createPartitionJudge({
      ...{ partition, settings: topic, symbols: new Map(), compareContent: false },
    }),
  );
  const effective = new Map<string, EffectivePill>();
  const offsets = new Map<number, number>();

  const ask: World['ask'] = async (query, headers = {}, key = account.key) => {
    const path = typeof query === 'string' ? query : `/api/pills?${textOf(query)}`;
    const answer = await request(`${base}${path}`, { headers: { 'x-api-key': key, ...headers } });
    const text = await answer.body.text();
    const isJson = String(answer.headers['content-type']).includes('json');
    return {
      ...{ status: answer.statusCode, headers: answer.headers, text },
      body: isJson ? JSON.parse(text) : null,
    };
  };
  return {
    ...{ namespace, db, account, base, sink, ask },
    async write(pills) {
      const acks = await writer.write(pills);
      for (const [at, { partition, offset, appendedAt }] of acks.entries()) {
        const record = pills[at]!;
        const key = Buffer.from(record.symbol);
        const verdict = judges[partition]!.judge(record, key, offset, appendedAt);
        offsets.set(partition, offset);
        if (verdict.kind !== 'effect') continue;
        const { pill } = verdict;
        const identity = `${pill.symbol} ${pill.timestamp} ${pill.id}`;
        if (!effective.has(identity)) effective.set(identity, pill);
      }
    },
    pills: () =>
      [...effective.values()].sort((a, b) => a.partition - b.partition || a.offset - b.offset),
    end: () => formatPosition(topic.epoch, offsets),
    async pages(query, key) {
      const pages: Answer[] = [];
      for (let next: Parameters<World['ask']>[0] | null = query; next !== null; ) {
        const page: Answer = await ask(next, {}, key);
        if (page.status !== 200) throw new Error(`${page.status} ${page.text}`);
        pages.push(page);
        next = page.body.next;
      }
      return pages;
    },
    async stored() {
      const until = formatPosition(topic.epoch, offsets);
      await waitFor('history to have it all', async () => {
        const { status, text } = await ask({ until, limit: 1 });
        return status === 200 || text;
      });
    },
    async close() {
      sink.child.kill('SIGCONT');
      await Promise.all([api, sink, latest].map((process) => process.stop()));
      await writer.close();
      await db.destroy();
    },
  };
}

function textOf(query: Record<string, string | number>): string {
  const entries = Object.entries(query).map(([name, value]): [string, string] => [
    name,
    String(value),
  ]);
  return String(new URLSearchParams(entries));
}
