const DAY_MS = 86_400_000;

/**
 * When the calls of the day are used up at the pace so far; undefined if the day ends before.
 * @returns ISO 8601; now or earlier if they are used up already
 */
export function runsOutAt(today: {
  readonly day: string;
  readonly used: number;
  readonly limit: number | null;
  readonly projected: number | null;
}): string | undefined {
  const { day, used, limit, projected } = today;
  if (limit === null || limit === 0) return undefined;
  const startMs = Date.parse(`${day}T00:00:00Z`);
  if (used >= limit) return new Date().toISOString();
  if (projected === null || projected <= limit) return undefined;
  return new Date(startMs + (DAY_MS * limit) / projected).toISOString();
}
