import path from 'node:path';
import { nowMicros } from '../../lib/timing/clock.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';
import { openSender } from './open-sender.ts';
import { formatRate, showProgress } from './progress.ts';
import { idStem } from './quote-pill.ts';
import { type Survey, surveyQuotes } from './quotes.ts';
import { type ReplayRequest, readReplayRequest } from './replay-request.ts';
import { createSchedule } from './schedule.ts';
import { newTally, replay, type Tally } from './send-quotes.ts';

// Exit codes: 0 all accepted; 1 any refused, unknown or unsent; 2 wrong flags or file.
const EXIT_NOT_ALL = 1;
const EXIT_USAGE = 2;

const say = (text: string) => process.stderr.write(`${text}\n`);

async function main(): Promise<number> {
  const request = readReplayRequest(process.argv.slice(2), nowMicros());
  const survey = await surveyQuotes(request.file);
  if (survey.faultCount > 0) {
    for (const { line, reason } of survey.faults) say(`${request.file}:${line}: ${reason}`);
    say(`${survey.faultCount} lines cannot be read; nothing was sent.`);
    return EXIT_USAGE;
  }
  announce(request, survey);

  const stopping = new AbortController();
  const tally = newTally();
  const spanS = (survey.last - survey.first) / 1e6;
  const plannedS = request.pace === 'fast' ? 0 : spanS / request.pace;
  const progress = showProgress(tally, survey.rows, plannedS);
  process.once('SIGINT', () => stopping.abort());
  process.once('SIGTERM', () => stopping.abort());
  const started = performance.now();
  try {
    const sender = await openSender(request, {
      signal: stopping.signal,
      onRetry: (reason, attempt, waitMs) =>
        progress.note(`Try ${attempt} failed: ${reason}; again in ${Math.round(waitMs)} ms.`),
    });
    try {
      const schedule = createSchedule({ ...request, ...survey });
      const stem = idStem(path.basename(request.file));
      await replay({
        ...request,
        making: { ...request, marketState: request.state, stem, stamp: schedule.stamp },
        schedule,
        sender,
        batchMax: request.batch,
        // A repeated or continued run first catches up with its own clock.
        elapsedMs: request.time === 'now' ? (nowMicros() - request.start) / 1000 : 0,
        signal: stopping.signal,
        tally,
      });
    } finally {
      await sender.close();
    }
  } finally {
    progress.stop();
    summarise(tally, survey.rows, (performance.now() - started) / 1000);
  }
  const left = survey.rows - tally.sent + tally.unknown;
  if (left > 0) explainHowToContinue(request, left);
  return tally.ok + tally.replayed === survey.rows ? 0 : EXIT_NOT_ALL;
}

function announce(request: ReplayRequest, survey: Survey): void {
  const times = request.time === 'own' ? 'their own times' : 'times from now on';
  say(`${survey.rows} quotes of ${request.symbol}, sent via ${request.via} with ${times}.`);
  if (request.time === 'now') {
    say(`Run ${request.run}; to repeat it: --start ${formatTimestamp(request.start)}`);
  }
  if (survey.crossed > 0) {
    say(`Warning: in ${survey.crossed} quotes the ask is below the bid (negative spread).`);
  }
  if (request.concurrency > 1) {
    say('Warning: several requests at a time; pills may overtake each other and be late.');
  }
}

function summarise(tally: Tally, rows: number, seconds: number): void {
  const { sent, ok, replayed, refused, unknown } = tally;
  const notSent = rows - sent === 0 ? '' : `, not sent ${rows - sent}`;
  // The figures go to stdout, so that a script can read them; everything else goes to stderr.
  process.stdout.write(
    `sent ${sent}, ok ${ok}, replayed ${replayed}, refused ${refused}, unknown ${unknown}` +
      `${notSent}; ${seconds.toFixed(1)} s, ${formatRate(sent / Math.max(seconds, 0.001))}\n`,
  );
  for (const [reason, { line, count }] of tally.reasons) {
    say(`  line ${line}: ${reason}${count > 1 ? ` (and ${count - 1} more)` : ''}`);
  }
}

function explainHowToContinue(request: ReplayRequest, left: number): void {
  const flag = request.time === 'own' ? '' : ` with --start ${formatTimestamp(request.start)}`;
  say(
    `${left} rows were not acknowledged. To continue without doubles, run the same command${flag}.`,
  );
}

try {
  process.exitCode = await main();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  const isFile = (error as NodeJS.ErrnoException).syscall === 'open';
  process.exitCode = isFile ? EXIT_USAGE : EXIT_NOT_ALL;
}
