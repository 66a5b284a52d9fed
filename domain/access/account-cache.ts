/**
 * A cache whose entries belong to accounts, so that all entries of one account can be dropped at
 * once. It holds at most `max` entries and evicts the oldest, used or not: a hit then costs no
 * bookkeeping, and an evicted entry costs one database read.
 */
export function createAccountCache<T>(max: number) {
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
    get: (handle: string): T | undefined => entries.get(handle)?.value,
    put(handle: string, accountId: string, value: T): void {
      remove(handle);
      if (entries.size >= max) remove(entries.keys().next().value!);
      entries.set(handle, { value, accountId });
      const siblings = handles.get(accountId);
      if (siblings === undefined) handles.set(accountId, new Set([handle]));
      else siblings.add(handle);
    },
    delete: remove,
    /** Drops the entries of an account; undefined = all entries. */
    drop(accountId: string | undefined): void {
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
