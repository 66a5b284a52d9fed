import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { newId } from '../../../domain/access/id.ts';
import { readPepper } from '../../../domain/access/pepper.ts';
import { createSeal } from '../../../domain/access/sealing.ts';
import { sealSecrets } from '../../../domain/destinations/destination.ts';
import type { S3Settings } from '../../../domain/destinations/s3/s3-settings.ts';
import { packSymbols } from '../../../domain/order/snapshot.ts';
import type { EndpointFilter } from '../../../domain/webhooks/endpoints/webhook-endpoint.ts';
import type { PillRecord } from '../../../schemas/pill.ts';
import { formatCursor } from '../../../schemas/position.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
} from '../../../testing/accounts.ts';
import { createNamespace } from '../../../testing/namespace.ts';
import { openPillWriter } from '../../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { type S3Server, startS3Server } from '../../../testing/s3-server.ts';
import { waitFor } from '../../../testing/wait.ts';

export interface Manifest {
  readonly partition: number;
  readonly first_offset: number;
  readonly end_offset: number;
  readonly previous_end_offset: number | null;
  readonly object: string;
  readonly pills: number;
  readonly bytes: number;
  readonly sha256: string;
}

export type DestinationFixture = Awaited<ReturnType<typeof openDestinationFixture>>;

/** Real engines, a real S3 server and an Institutional account; processes are started by tests. */
export async function openDestinationFixture() {
  const namespace = await createNamespace();
  const writer = await openPillWriter(namespace);
  const db = openTestDatabase(namespace);
  const s3: S3Server = await startS3Server();
  const processes: TestProcess[] = [];
  const seal = createSeal(readPepper(namespace.env.KEY_PEPPER_FILE!));
  const account = await createTestAccount(db, namespace, { tier: 'institutional' });
  const { epoch, partitions } = namespace.settings;
  const env = { ...namespace.env, WEBHOOK_ALLOW_LOOPBACK: 'true' };
  return {
    ...{ namespace, db, s3, account, env },
    /** Adds a destination that starts at the beginning of the log, with a bucket of its own. */
    async add(
      of: {
        readonly settings?: Partial<S3Settings>;
        readonly filter?: Partial<EndpointFilter>;
        readonly secrets?: Partial<S3Server['credentials']>;
        readonly account?: TestAccount;
      } = {},
    ) {
      const id = newId('dst');
      const bucket = `bucket-${id.slice(4)}`;
      s3.makeBucket(bucket);
      const settings: S3Settings = {
        ...{ endpoint: s3.url, region: 'us-east-1', bucket, prefix: 'all/' },
        ...{ addressing: 'path', format: 'ndjson', window_s: 10 },
        ...of.settings,
      };
      const none = { symbols: [], states: [], backfill: false };
      await db
        .insertInto('destinations')
        .values({
          ...{ id, account_id: (of.account ?? account).id, name: 'test', type: 's3' },
          settings: JSON.stringify(settings),
          filter: JSON.stringify({ ...none, ...of.filter }),
          sealed: sealSecrets(seal, { ...s3.credentials, ...of.secrets }, id),
          created_by: 'system',
        })
        .execute();
      const snapshot = await packSymbols(new Map());
      for (let partition = 0; partition < partitions; partition += 1) {
        const position = { epoch, partition, next_offset: 0, snapshot_offset: 0, snapshot };
        await db
          .insertInto('destination_positions')
          .values({ destination_id: id, ...position })
          .execute();
      }
      return { id, bucket: settings.bucket, settings };
    },
    async start(more: Readonly<Record<string, string>> = {}): Promise<TestProcess> {
      const started = await startProcess('pipelines/main.js', ['destinations'], {
        ...env,
        ...more,
      });
      processes.push(started);
      await started.ready();
      return started;
    },
    /** @returns cursors, in the order given */
    async write(pills: readonly PillRecord[]): Promise<string[]> {
      const acks = await writer.write(pills);
      return acks.map(({ partition, offset }) => formatCursor(partition, offset));
    },
    row: (id: string) =>
      db.selectFrom('destinations').selectAll().where('id', '=', id).executeTakeFirstOrThrow(),
    manifests: (bucket: string) => manifestsIn(path.join(s3.root, bucket)),
    object: (bucket: string, key: string) => readFileSync(path.join(s3.root, bucket, key)),
    /** Keys of objects, manifests included. */
    keys: (bucket: string) => keysIn(path.join(s3.root, bucket)),
    /** Cursors in the NDJSON objects of a bucket that manifests name, by manifest. */
    cursors(bucket: string): string[] {
      return manifestsIn(path.join(s3.root, bucket)).flatMap(({ object }) =>
        linesOf(readFileSync(path.join(s3.root, bucket, object))).map(({ cursor }) => cursor),
      );
    },
    /** @param by whether the lines of objects are read, or the counts of manifests are added up */
    async waitForPills(
      bucket: string,
      cursors: readonly string[],
      by: 'line' | 'manifest' = 'line',
    ): Promise<void> {
      await waitFor(`${cursors.length} pills in ${bucket}`, () => {
        if (by === 'manifest') {
          const pills = this.manifests(bucket).reduce((sum, one) => sum + one.pills, 0);
          return pills >= cursors.length || `${pills}`;
        }
        const seen = new Set(this.cursors(bucket));
        const missing = cursors.filter((cursor) => !seen.has(cursor));
        return missing.length === 0 || `${missing.length} missing, e.g. ${missing[0]}`;
      });
    },
    async close(): Promise<void> {
      if (process.env.SHOW) process.stderr.write(processes.map((one) => one.output()).join('\n'));
      for (const one of processes) await one.kill();
      await s3.close();
      await writer.close();
      await db.destroy();
    },
  };
}

/** The lines of an NDJSON object; fails unless each is whole. */
export function linesOf(bytes: Buffer): { cursor: string; symbol: string; prev: string | null }[] {
  const text = bytes.toString('utf8');
  if (!text.endsWith('\n')) throw new Error('The object is cut.');
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line));
}

function keysIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => path.relative(folder, path.join(one.parentPath, one.name)))
    .filter((key) => !key.startsWith('.'))
    .sort();
}

function manifestsIn(folder: string): Manifest[] {
  if (!existsSync(folder)) return [];
  return keysIn(folder)
    .filter((key) => /(^|\/)manifests\//.test(key))
    .map((key) => JSON.parse(readFileSync(path.join(folder, key), 'utf8')) as Manifest);
}
