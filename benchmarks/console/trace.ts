/** The part of Chromium's trace events that is used; times in µs. */
interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  /** Without the time in which another thread had the core. */
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

const MAIN_THREAD = 'CrRendererMain';
const TASK = 'RunTask';
/** A task above this is long, by the W3C's Long Tasks. */
const LONG_MICROS = 50_000;

/**
 * Tasks of the busiest main thread of a renderer.
 * @param json a trace with the category `devtools.timeline`, as Chromium writes it
 * @throws if it has no tasks of a renderer
 */
export function mainThreadOf(json: string) {
  const { traceEvents } = JSON.parse(json) as { readonly traceEvents: readonly TraceEvent[] };
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid}/${tid}`;
  const mains = new Set(
    traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args?.name === MAIN_THREAD)
      .map(threadOf),
  );
  const tasks = new Map<string, TraceEvent[]>();
  for (const event of traceEvents) {
    const thread = threadOf(event);
    if (event.name !== TASK || event.ph !== 'X' || !mains.has(thread)) continue;
    const own = tasks.get(thread);
    if (own === undefined) tasks.set(thread, [event]);
    else own.push(event);
  }
  const sumOf = (events: readonly TraceEvent[]) =>
    events.reduce((sum, { dur = 0 }) => sum + dur, 0);
  const [busiest] = [...tasks.values()].sort((a, b) => sumOf(b) - sumOf(a));
  if (busiest === undefined) throw new Error('The trace has no tasks of a renderer.');
  const firstMicros = Math.min(...busiest.map(({ ts }) => ts));
  const lastMicros = Math.max(...busiest.map(({ ts, dur = 0 }) => ts + dur));
  const durations = busiest.map(({ dur = 0 }) => dur);
  const cpu = busiest.map(({ dur = 0, tdur = dur }) => tdur);
  return {
    tasks: busiest.length,
    /** Share of the time; on a full machine the thread also waits for its core. */
    busyShare: sumOf(busiest) / (lastMicros - firstMicros),
    longTasks: durations.filter((dur) => dur > LONG_MICROS).length,
    longestMicros: Math.max(...durations),
    /** The same by the CPU that the tasks took. */
    longCpuTasks: cpu.filter((dur) => dur > LONG_MICROS).length,
    longestCpuMicros: Math.max(...cpu),
  };
}
