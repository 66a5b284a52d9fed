import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { waitFor } from '../../testing/wait.ts';
import { LIMITS } from './limits.ts';
import { openSupervisor } from './supervisor.ts';

let namespace: Namespace;
let db: Database;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

test('many calls to follow cause few readings, and one follows the last call', async () => {
  let readings = 0;
  const counted = db.withPlugin({
    transformQuery({ node }) {
      if (node.kind === 'SelectQueryNode') readings += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const ends = { ask: async () => undefined, close: async () => undefined };
  const supervisor = openSupervisor({
    config: {} as never,
    db: counted,
    ends: ends as never,
    log: silentLog,
  });
  try {
    await waitFor('the first reading', () => readings > 0);
    const startedAtMs = performance.now();
    const before = readings;
    await waitFor('ten readings', () => {
      for (let n = 0; n < 100; n += 1) supervisor.follow();
      return readings - before >= 10;
    });
    const possible = (performance.now() - startedAtMs) / LIMITS.followDistanceMs;
    expect(readings - before).toBeLessThanOrEqual(possible + 1);
    // A call within the distance is not lost.
    const last = readings;
    supervisor.follow();
    await waitFor('the reading after the last call', () => readings > last);
  } finally {
    await supervisor.close();
  }
});
