import {
  type Alarm,
  alertedSources,
  sendAlerts,
  updateAlerts,
} from '../../../domain/accounts/operator-alerts.ts';
import type { PendingMailDeps } from '../../../domain/accounts/pending-mails.ts';
import type { Markets } from '../../../domain/market/quiet/markets.ts';
import { createGauge } from '../../../lib/metrics/metrics.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { runEvery } from '../../../lib/timing/run-every.ts';
import type { LatestPill } from '../../../schemas/avro.ts';
import type { Select } from '../clickhouse/select.ts';
import type { LatestView } from '../pills/latest-view.ts';
import type { AlertSettings } from './alert-settings.ts';
import { readOutcomes } from './outcomes.ts';

const silentGenerators = createGauge({
  name: 'pillole_generators_silent',
  help: 'Generators without a pill for ALERT_SILENCE_S, although a market of theirs is open.',
});

const LOOK_EVERY_MS = 10_000;
/** The rate of refusals is that of this time, and counts from so many refusals on. */
const RATE_WINDOW_US = 600e6;
const REFUSALS_MIN = 20;
/** A symbol without a pill for so long is not expected any more. */
const EXPECTED_US = 7 * 86_400e6;

/**
 * Watches the generators. Episodes are sent if the settings say where; any number of processes may
 * watch, and each episode is sent once.
 */
export function watchGenerators(
  of: PendingMailDeps & {
    readonly settings: AlertSettings;
    readonly view: LatestView;
    readonly markets: Markets;
    readonly select: Select;
    readonly namespace: string;
  },
) {
  const { settings, view, markets, db, log } = of;
  const isSent = settings.address !== undefined || settings.webhookUrl !== undefined;
  const look = (name: string, run: () => Promise<unknown>) =>
    runEvery({ name, everyMs: LOOK_EVERY_MS, jitter: 0.2, log, run });
  const jobs = [
    look('alerts about silence', async () => {
      // While the log is away, no generator can be heard, and none is silent.
      if (!view.isReady() || !view.isConnected()) return;
      const pills = [...view.rows()].map(({ pill }) => pill);
      const alarms = silentSources(pills, markets, nowMicros(), settings.silenceS);
      silentGenerators.set(alarms.length);
      if (isSent) await updateAlerts(db, 'silent', alarms, settings);
    }),
  ];
  const alerts = () => [
    look('alerts about refusals', async () => {
      const running = await alertedSources(db, 'refusals');
      await updateAlerts(db, 'refusals', await refusedSources(of, running), settings);
    }),
    look('alerts', () => sendAlerts(of, settings)),
  ];
  if (isSent) jobs.push(...alerts());
  return { close: async () => void (await Promise.all(jobs.map((job) => job.close()))) };
}

/** Sources without a pill for `silenceS`, although a market of theirs is open for as long. */
export function silentSources(
  pills: readonly LatestPill[],
  markets: Pick<Markets, 'of'>,
  now: number,
  silenceS: number,
): readonly Alarm[] {
  const newest = new Map<string, { receivedAt: number; open: string | undefined }>();
  for (const { source, symbol, received_at: receivedAt, backfill } of pills) {
    if (backfill || receivedAt < now - EXPECTED_US) continue;
    const name = source ?? '';
    const known = newest.get(name) ?? { receivedAt: 0, open: undefined };
    known.receivedAt = Math.max(known.receivedAt, receivedAt);
    const { state, sinceMs } = markets.of(symbol, now / 1000);
    const isOpen = state === 'open' && now - (sinceMs ?? 0) * 1000 >= silenceS * 1e6;
    if (isOpen && !symbol.startsWith('TEST:')) known.open ??= symbol;
    newest.set(name, known);
  }
  return [...newest].flatMap(([source, { receivedAt, open }]) => {
    if (open === undefined || now - receivedAt < silenceS * 1e6) return [];
    const silent = Math.floor((now - receivedAt) / 1e6);
    return [{ source, detail: `No pill for ${silent} s, although the market of ${open} is open.` }];
  });
}

/** Sources of which many pills are refused; a running episode ends at half of the rate. */
async function refusedSources(
  { select, namespace, settings }: Parameters<typeof watchGenerators>[0],
  running: ReadonlySet<string>,
): Promise<readonly Alarm[]> {
  const until = nowMicros();
  const window = { since: until - RATE_WINDOW_US, until };
  const bySource = new Map<string, { refused: number; all: number }>();
  for (const hour of await readOutcomes(select, namespace, window, undefined)) {
    const sum = bySource.get(hour.source) ?? { refused: 0, all: 0 };
    const refused = hour.refused + hour.rejected;
    sum.refused += refused;
    sum.all += refused + hour.accepted + hour.repeated;
    bySource.set(hour.source, sum);
  }
  return [...bySource].flatMap(([source, { refused, all }]) => {
    const percent = (100 * refused) / all;
    const isOver = running.has(source)
      ? percent >= settings.refusedPercent / 2
      : percent >= settings.refusedPercent && refused >= REFUSALS_MIN;
    if (!isOver) return [];
    const detail = `Of ${all} pills in the last 10 minutes, ${refused} were refused (${percent.toFixed(1)} %).`;
    return [{ source, detail }];
  });
}
