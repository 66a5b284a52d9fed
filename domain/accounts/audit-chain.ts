import { createHash } from 'node:crypto';
import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';

/** Entries per statement of an export. */
const PAGE_ROWS = 1_000;
const NO_ENTRY = '0'.repeat(64);
/** The hash is over the line without this member. */
const LINE = /^(\{"account":.*),"hash":"([0-9a-f]{64})"\}$/s;

/** An end of a chain: an entry and its hash. */
export interface ChainEnd {
  readonly id: string;
  readonly hash: string;
}

/** What a chain was found to be; `broken` names the first entry that does not fit. */
export type ChainChecked =
  | {
      readonly kind: 'intact';
      readonly entries: number;
      /** Hash that the first entry continues from; zeros = the beginning of the log. */
      readonly from: string;
      readonly head: ChainEnd;
    }
  | { readonly kind: 'broken'; readonly reason: string };

/**
 * Reads the audit log of an account as NDJSON, oldest entry first, by pages of one snapshot. Each
 * line is canonical JSON (keys sorted, no blanks), followed by `hash`: the SHA-256 of the line
 * without this member. `previous` is the hash of the entry before.
 * @param accountId null = the platform
 */
export async function exportAudit(
  db: Database,
  accountId: string | null,
  onLine: (line: string) => Promise<void> | void,
): Promise<{ readonly anchor: ChainEnd; readonly head: ChainEnd }> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (tx) => {
      const ends = await readEnds(tx, accountId);
      let after = '0';
      for (;;) {
        const page = await readLines(tx, accountId, after);
        for (const { line } of page) await onLine(line);
        if (page.length < PAGE_ROWS) return ends;
        after = page.at(-1)!.id;
      }
    });
}

/** Checks the chain of an account in the database, from its anchor to its head. */
export async function verifyAudit(
  db: Database,
  accountId: string | null,
  onLine: (line: string) => void = () => {},
): Promise<ChainChecked> {
  const check = createChainCheck();
  const { anchor, head } = await exportAudit(db, accountId, (line) => {
    check.add(line);
    onLine(line);
  });
  const found = check.end();
  if (found.kind === 'broken') return found;
  if (found.entries > 0 && found.from !== anchor.hash) {
    return broken(`Entries before entry ${check.firstId()}, the oldest, are missing.`);
  }
  const end = found.entries > 0 ? found.head : anchor;
  if (end.hash === head.hash) return { ...found, from: anchor.hash, head };
  return broken(`Entries after entry ${end.id} are missing: the newest was entry ${head.id}.`);
}

/** Creates a check of the lines of an export, which the caller adds in order. */
export function createChainCheck() {
  let entries = 0;
  let account: unknown;
  let from: string | undefined;
  let firstId = '0';
  let head: ChainEnd = { id: '0', hash: NO_ENTRY };
  let fault: string | undefined;
  const faultOf = (line: string): string | undefined => {
    const [, content, hash] = LINE.exec(line) ?? [];
    const entry = content === undefined ? undefined : parse(`${content}}`);
    if (hash === undefined || entry === undefined) {
      return `Line ${entries + 1} is not a line of an export.`;
    }
    const { id, previous, at, action } = entry;
    const named = `Entry ${id} (${at}, ${action})`;
    if (createHash('sha256').update(`${content}}`).digest('hex') !== hash) {
      return `${named} was changed: its hash does not match its content.`;
    }
    if (entries > 0 && previous !== head.hash) {
      return `${named} does not follow entry ${head.id}: entries between them are missing or were replaced.`;
    }
    if (entries > 0 && entry.account !== account) return `${named} is of another account.`;
    if (entries === 0) [account, from, firstId] = [entry.account, String(previous), String(id)];
    head = { id: String(id), hash };
    entries += 1;
    return undefined;
  };
  return {
    /** After the first fault, further lines are ignored. */
    add(line: string): void {
      fault ??= faultOf(line);
    },
    firstId: () => firstId,
    end: (): ChainChecked =>
      fault === undefined
        ? { kind: 'intact', entries, from: from ?? NO_ENTRY, head }
        : broken(fault),
  };
}

function broken(reason: string): ChainChecked {
  return { kind: 'broken', reason };
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readEnds(tx: Transaction<Tables>, accountId: string | null) {
  const row = await tx
    .selectFrom('audit_chains')
    .selectAll()
    .where('chain', '=', accountId ?? '')
    .executeTakeFirst();
  const end = (id = '0', hash?: Buffer) => ({ id, hash: hash?.toString('hex') ?? NO_ENTRY });
  return {
    anchor: end(row?.anchor_id, row?.anchor_hash),
    head: end(row?.head_id, row?.head_hash),
  };
}

async function readLines(tx: Transaction<Tables>, accountId: string | null, after: string) {
  const { rows } = await sql<{ readonly id: string; readonly line: string }>`
    SELECT l.id, left(audit_content(l), -1) || ',"hash":"' || encode(l.hash, 'hex') || '"}' AS line
    FROM audit_log l
    WHERE ${accountId === null ? sql`l.account_id IS NULL` : sql`l.account_id = ${accountId}`}
      AND l.id > ${after}
    ORDER BY l.id LIMIT ${PAGE_ROWS}`.execute(tx);
  return rows;
}
