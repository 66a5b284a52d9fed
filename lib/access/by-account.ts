/**
 * What is held in memory about accounts, so that all of one account can be dropped at once. At
 * most `max` entries: one more and the one that was put in first goes, used or not; it costs a
 * look-up when it is asked for again, and a use costs no bookkeeping.
 */
export interface ByAccount<T> {
  get(handle: string): T | undefined;
  put(handle: string, accountId: string, value: T): void;
  delete(handle: string): void;
  /** Drops what is held of an account; undefined = everything. */
  drop(accountId: string | undefined): void;
}

/** Nothing is held yet. */
export function createByAccount<T>(max: number): ByAccount<T> {
  const entries = new Map<string, { readonly value: T; readonly accountId: string }>();
  const handles = new Map<string, Set<string>>();

  const remove = (handle: string) => {
    const entry = entries.get(handle);
    if (entry === undefined) return;
    entries.delete(handle);
    const siblings = handles.get(entry.accountId)!;
    siblings.delete(handle);
    if (siblings.size === 0) handles.delete(entry.accountId);
  };

  return {
    get: (handle) => entries.get(handle)?.value,
    put(handle, accountId, value) {
      remove(handle);
      if (entries.size >= max) remove(entries.keys().next().value!);
      entries.set(handle, { value, accountId });
      const siblings = handles.get(accountId);
      if (siblings === undefined) handles.set(accountId, new Set([handle]));
      else siblings.add(handle);
    },
    delete: remove,
    drop(accountId) {
      if (accountId === undefined) {
        entries.clear();
        handles.clear();
        return;
      }
      for (const handle of handles.get(accountId) ?? []) entries.delete(handle);
      handles.delete(accountId);
    },
  };
}
