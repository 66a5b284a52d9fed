import { type Selectable, sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import type { Receipt } from '../../schemas/receipt.ts';
import { newId } from '../access/id.ts';
import { isSchemeId } from '../access/scheme-rows.ts';
import { type AccountRequest, writeAudit } from '../accounts/audit.ts';
import { roleOfSession } from '../accounts/sessions.ts';

export type ExportRow = Selectable<Tables['exports']>;

/** Bounds of the jobs; see EXPORT_LIMITS. */
export interface ExportBounds {
  readonly openOfAccountMax: number;
  readonly dailyOfAccountMax: number;
  readonly openMax: number;
  readonly allBytesMax: number;
  readonly keptS: number;
  readonly leaseS: number;
  readonly attemptsMax: number;
}

/** What an export is made from; stored as it was requested. */
export interface NewExport {
  readonly request: object;
  readonly epoch: string;
  readonly position: string;
  readonly rowsEstimated: number;
  readonly bytesEstimated: number;
}

export type ExportCreated =
  | { readonly kind: 'ok'; readonly row: ExportRow }
  /** Of the account: `open` exports, or those of a `day`. */
  | { readonly kind: 'limit'; readonly of: 'open' | 'day'; readonly limit: number }
  /** Of the platform: too many wait, or the folder is full. */
  | { readonly kind: 'full'; readonly of: 'open' | 'bytes' };

/** Exports of accounts. The id of another account's export counts as unknown: undefined. */
export type ExportJobs = ReturnType<typeof createExportJobs>;

/** Creates the operations of customers. */
export function createExportJobs(db: Database, bounds: ExportBounds) {
  return {
    create: (requester: AccountRequest, wanted: NewExport): Promise<ExportCreated> =>
      inTurn(db, requester.accountId, (tx) => createExport(tx, bounds, requester, wanted)),

    /** Newest first; bounded by the exports of two days. */
    list: (accountId: string): Promise<ExportRow[]> =>
      db
        .selectFrom('exports')
        .selectAll()
        .where('account_id', '=', accountId)
        .orderBy('created_at', 'desc')
        .limit(bounds.dailyOfAccountMax * 3)
        .execute(),

    get: (accountId: string, id: string): Promise<ExportRow | undefined> =>
      selectExport(db, id).where('account_id', '=', accountId).executeTakeFirst(),

    /** For a link, which names no account. */
    find: (id: string): Promise<ExportRow | undefined> => selectExport(db, id).executeTakeFirst(),

    /** Cancels an export that is open, and removes one that is over. @returns as it was before */
    remove: (requester: AccountRequest, id: string): Promise<ExportRow | undefined> =>
      inTurn(db, requester.accountId, async (tx) => {
        const row = await selectExport(tx, id)
          .where('account_id', '=', requester.accountId)
          .forUpdate()
          .executeTakeFirst();
        if (row === undefined) return undefined;
        const isOpen = row.state === 'waiting' || row.state === 'running';
        if (isOpen) {
          const over = { state: 'canceled', finished_at: sql<Date>`now()`, owner: null } as const;
          await tx.updateTable('exports').set(over).where('id', '=', id).execute();
        } else await tx.deleteFrom('exports').where('id', '=', id).execute();
        const action = isOpen ? 'export.canceled' : 'export.removed';
        await writeAudit(tx, { ...requester, action, target: id });
        return row;
      }),

    /** Whether a key or scheme is live: a link that it made ends with it. */
    isCredentialLive: (id: string): Promise<boolean> =>
      isSchemeId(id) ? isSchemeLive(db, id) : isKeyLive(db, id),
    /** Role of the user of an account who is signed in by a session; undefined = none is. */
    roleOfSession: (accountId: string, id: string) => roleOfSession(db, accountId, id),
  };
}

const isUnexpired = sql<boolean>`(expires_at IS NULL OR expires_at > now())`;

async function isKeyLive(db: Database, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('api_keys')
    .select('id')
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .where(isUnexpired)
    .executeTakeFirst();
  return row !== undefined;
}

/** A scheme that stands for a key lives no longer than the key. */
async function isSchemeLive(db: Database, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('authentication_schemes')
    .select(['id', 'key_id'])
    .where('id', '=', id)
    .where('is_on', '=', true)
    .where('removed_at', 'is', null)
    .where(isUnexpired)
    .executeTakeFirst();
  return row !== undefined && (row.key_id === null || (await isKeyLive(db, row.key_id)));
}

function selectExport(db: Database | Transaction<Tables>, id: string) {
  return db.selectFrom('exports').selectAll().where('id', '=', id);
}

async function createExport(
  tx: Transaction<Tables>,
  bounds: ExportBounds,
  requester: AccountRequest,
  { rowsEstimated, bytesEstimated, request, ...log }: NewExport,
): Promise<ExportCreated> {
  const { accountId: account_id, actor } = requester;
  // One at a time, over all processes: the bounds hold over all accounts. Removed exports count too,
  // so their creations are counted in the audit log.
  await sql`SELECT pg_advisory_xact_lock(hashtext(current_schema() || ' exports'))`.execute(tx);
  const { rows } = await sql<Record<'own' | 'day' | 'open' | 'bytes', string>>`
    SELECT count(*) FILTER (WHERE account_id = ${account_id} AND is_open) AS own,
      (SELECT count(*) FROM audit_log WHERE account_id = ${account_id}
        AND action = 'export.created' AND at > now() - interval '1 day') AS day,
      count(*) FILTER (WHERE is_open) AS open,
      coalesce(sum(CASE WHEN is_open THEN greatest(bytes, (request->>'bytes')::bigint)
        ELSE bytes END), 0) AS bytes
    FROM (SELECT *, state IN ('waiting', 'running') AS is_open FROM exports) all_exports`.execute(
    tx,
  );
  const { own, day, open, bytes } = rows[0]!;
  if (Number(own) >= bounds.openOfAccountMax) {
    return { kind: 'limit', of: 'open', limit: bounds.openOfAccountMax };
  }
  if (Number(day) >= bounds.dailyOfAccountMax) {
    return { kind: 'limit', of: 'day', limit: bounds.dailyOfAccountMax };
  }
  if (Number(open) >= bounds.openMax) return { kind: 'full', of: 'open' };
  if (Number(bytes) + bytesEstimated > bounds.allBytesMax) return { kind: 'full', of: 'bytes' };
  const row = await tx
    .insertInto('exports')
    .values({
      id: newId('exp'),
      account_id,
      created_by: actor,
      request: JSON.stringify({ ...request, bytes: bytesEstimated }),
      rows_estimated: rowsEstimated,
      ...log,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  const detail = { rows: rowsEstimated, request };
  await writeAudit(tx, { ...requester, action: 'export.created', target: row.id, detail });
  return { kind: 'ok', row };
}

/** The state of a running export. `false`: it was canceled, or another process has it. */
export type ExportClaims = ReturnType<typeof createExportClaims>;

/** Creates the operations of a process that writes exports. @param owner differs by process */
export function createExportClaims(db: Database, bounds: ExportBounds, owner: string) {
  const lease = sql<Date>`now() + make_interval(secs => ${bounds.leaseS})`;
  const update = async (id: string, change: object): Promise<boolean> => {
    const { numUpdatedRows } = await db
      .updateTable('exports')
      .set(change)
      .where('id', '=', id)
      .where('owner', '=', owner)
      .where('state', '=', 'running')
      .executeTakeFirst();
    return numUpdatedRows === 1n;
  };
  return {
    /**
     * Takes the oldest export that waits, of an account of which no
     * other export runs.
     */
    claim: (): Promise<ExportRow | undefined> => claimExport(db, bounds, owner),

    progress: (id: string, of: { readonly rows: number; readonly bytes: number }) =>
      update(id, { rows_done: of.rows, bytes: of.bytes, owner_until: lease }),
    finish: (id: string, of: FinishedExport) =>
      update(id, {
        state: 'done',
        finished_at: sql`now()`,
        owner: null,
        rows_done: of.receipt.count,
        bytes: of.bytes,
        sha256: of.sha256,
        receipt: JSON.stringify(of.receipt),
        file: of.file,
      }),
    fail: (id: string, problem: string) =>
      update(id, { state: 'failed', finished_at: sql`now()`, owner: null, problem }),
    /** Back to those that wait, for example at the end of the process. */
    release: (id: string) => update(id, { state: 'waiting', owner: null, owner_until: null }),

    /** Deletes exports that are over long enough. */
    async prune(): Promise<void> {
      await sql`DELETE FROM exports
        WHERE finished_at < now() - make_interval(secs => ${bounds.keptS})`.execute(db);
    },
    /** Of these file names, one batch, those that a row names. */
    async known(names: readonly string[]): Promise<ReadonlySet<string>> {
      if (names.length === 0) return new Set();
      const rows = await db
        .selectFrom('exports')
        .select('file')
        .where('file', 'in', names)
        .execute();
      return new Set(rows.map(({ file }) => file!));
    },
  };
}

/**
 * One claim at a time, over all processes: two that saw an account without a running export could
 * each take one of it. Leases that have ended are given up first, so that their processes, whose
 * statements name an owner, cannot renew them beside the export that is taken.
 */
async function claimExport(
  db: Database,
  { leaseS, attemptsMax }: ExportBounds,
  owner: string,
): Promise<ExportRow | undefined> {
  const isLost = sql`state = 'running' AND owner_until < now()`;
  const { rows: open } = await sql`
    SELECT FROM exports WHERE state = 'waiting' OR (${isLost}) LIMIT 1`.execute(db);
  if (open.length === 0) return undefined;
  return db.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtext(current_schema() || ' export claims'))`.execute(
      tx,
    );
    await sql`UPDATE exports SET state = 'failed', finished_at = now(), owner = NULL,
        problem = 'export_interrupted'
      WHERE ${isLost} AND attempts >= ${attemptsMax}`.execute(tx);
    await sql`UPDATE exports SET state = 'waiting', owner = NULL WHERE ${isLost}`.execute(tx);
    const { rows } = await sql<ExportRow>`
      UPDATE exports SET state = 'running', owner = ${owner},
        owner_until = now() + make_interval(secs => ${leaseS}),
        attempts = attempts + 1, started_at = now(), rows_done = 0, bytes = 0
      WHERE id = (SELECT id FROM exports e
        WHERE state = 'waiting' AND NOT EXISTS (SELECT FROM exports other
          WHERE other.account_id = e.account_id AND other.state = 'running')
        ORDER BY created_at FOR UPDATE SKIP LOCKED LIMIT 1)
      RETURNING *`.execute(tx);
    return rows[0];
  });
}

export interface FinishedExport {
  readonly bytes: number;
  readonly sha256: string;
  readonly receipt: Receipt;
  readonly file: string;
}
