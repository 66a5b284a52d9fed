import type { Database } from '../../../lib/postgres/database.ts';
import { waitFor } from '../../../testing/wait.ts';

/** The part of a stream client that reading needs. */
interface Client {
  until(type: 'welcome' | 'live'): Promise<unknown>;
  send(frame: object): void;
  pills(): readonly { readonly id: string }[];
}

/** A process starts within seconds; beside other test runs, within a minute or more. */
const READY_MS = 120_000;

/** Waits until the process of a name serves. @returns its pid, which is not `oldPid` */
export function readyPid(db: Database, name: string, oldPid: number): Promise<number> {
  const probe = async () => {
    const row = await db
      .selectFrom('dedicated_stream_states')
      .selectAll()
      .where('name', '=', name)
      .executeTakeFirst();
    const isReady = row?.state === 'ready' && row.pid !== null && row.pid !== oldPid;
    return isReady ? row.pid! : JSON.stringify(row ?? 'no row');
  };
  return waitFor(`${name} to be ready`, probe, READY_MS);
}

/** Subscribes to `*`, from a position or from now on. */
export async function subscribe(client: Client, resume?: string): Promise<void> {
  await client.until('welcome');
  const more = resume === undefined ? { snapshot: false } : { resume };
  client.send({ op: 'subscribe', id: '1', symbols: ['*'], mode: 'all', ...more });
  await client.until('live');
}

export const idsOf = (client: Client) => client.pills().map(({ id }) => id);

/** Waits until a client has been sent these pills. */
export const has = (client: Client, ids: readonly string[]) =>
  waitFor('the pills', () => {
    const got = new Set(idsOf(client));
    return ids.every((id) => got.has(id)) || `${got.size} of them`;
  });
