import { type StateReport, writeStates } from '../../domain/dedicated/stream-states.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { LIMITS } from './limits.ts';

/** Writes the states that have changed, and unchanged ones every `rewriteMs`. */
export function createStateWriter(db: Database) {
  const written = new Map<string, { readonly text: string; readonly atMs: number }>();
  return async (reports: readonly StateReport[]): Promise<void> => {
    const now = performance.now();
    const due = reports.filter((report) => {
      const before = written.get(report.name);
      const isOld = before === undefined || now - before.atMs >= LIMITS.rewriteMs;
      return isOld || before.text !== JSON.stringify(report);
    });
    await writeStates(db, due);
    for (const report of due) written.set(report.name, { text: JSON.stringify(report), atMs: now });
    const names = new Set(reports.map((report) => report.name));
    for (const name of written.keys()) if (!names.has(name)) written.delete(name);
  };
}
