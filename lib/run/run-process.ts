import { answerCommandLine } from '../config/command-line.ts';
import type { OpsConfig } from '../config/common.ts';
import { ConfigError } from '../config/config.ts';
import { unknownSettings } from '../config/unknown-settings.ts';
import { createLog, type Log } from '../log/log.ts';
import { startOpsServer } from './ops-server.ts';
import { registerProcessMetrics } from './process-metrics.ts';

/** The lifecycle of a process, as passed to the steps that build it. */
export interface Lifecycle {
  readonly log: Log;
  /** Aborted when the process is asked to stop. */
  readonly signal: AbortSignal;
  /** Registers a function that undoes the step just done. Stops run in reverse order. */
  onStop(step: string, stop: () => Promise<void> | void): void;
  /** Registers a condition of /ready: undefined while it holds, else the reason why not. */
  readyWhen(condition: () => string | undefined): void;
  /** Ends the process with an error: its supervisor restarts it from a clean state. */
  fail(error: Error): void;
}

/**
 * A stopping process exits within this time, even if a step hangs; below the 6 s after which the local
 * launcher kills it.
 */
const STOP_DEADLINE_MS = 5_500;

/**
 * Runs a process: builds it in order, serves /metrics, /health and /ready, stops in reverse order
 * on SIGTERM and SIGINT, and exits 1 on the first unexpected error. `--help` and `--print-config` are
 * answered before.
 */
export async function runProcess<C extends OpsConfig>(
  name: string,
  readConfig: (env: NodeJS.ProcessEnv) => C,
  build: (config: C, life: Lifecycle) => Promise<void>,
): Promise<void> {
  answerCommandLine(name, readConfig);
  const config = configOrExit(name, readConfig);
  const log = createLog(name, config.logLevel);
  logSettings(log, config);
  const stops: { step: string; stop: () => Promise<void> | void }[] = [];
  const conditions: (() => string | undefined)[] = [];
  const stopping = new AbortController();
  let built = false;

  const stopAll = async (exitCode: number) => {
    if (stopping.signal.aborted) return;
    stopping.abort(new Error(`${name} is stopping`));
    setTimeout(() => {
      log.error('did not stop in time');
      process.exit(exitCode || 1);
    }, STOP_DEADLINE_MS).unref();
    for (const { step, stop } of stops.reverse()) {
      try {
        await stop();
      } catch (error) {
        log.warn({ err: error, step }, 'a step did not stop cleanly');
      }
    }
    log.info('stopped');
    process.exit(exitCode);
  };
  const fail = (error: Error) => {
    // Once the process is stopping, unfinished steps reject with the abort: not an error.
    if (stopping.signal.aborted) return;
    log.fatal({ err: error }, 'stopping after an error');
    void stopAll(1);
  };
  process.on('SIGTERM', () => void stopAll(0));
  process.on('SIGINT', () => void stopAll(0));
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', (reason) =>
    fail(reason instanceof Error ? reason : new Error(String(reason))),
  );

  const life: Lifecycle = {
    log,
    signal: stopping.signal,
    onStop: (step, stop) => stops.push({ step, stop }),
    readyWhen: (condition) => conditions.push(condition),
    fail,
  };
  try {
    const notReady = () =>
      built ? conditions.map((condition) => condition()).find(Boolean) : 'starting';
    registerProcessMetrics(notReady);
    const ops = await startOpsServer({
      host: config.metricsHost,
      port: config.metricsPort,
      notReady,
      log,
    });
    life.onStop('ops server', ops.close);
    await build(config, life);
    built = true;
    log.info({ metrics: ops.url }, 'started');
  } catch (error) {
    fail(error as Error);
  }
}

/** Says which variables no process knows, and what is open to other machines. */
function logSettings(log: Log, { open }: OpsConfig): void {
  for (const warning of unknownSettings(process.env)) log.warn(warning);
  if (open.length === 0) log.info('open: nothing');
  else log.warn(`open: ${open.join('; ')}`);
}

function configOrExit<C>(name: string, read: (env: NodeJS.ProcessEnv) => C): C {
  try {
    return read(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${name} cannot start: ${error.message}\n`);
    process.exit(2);
  }
}
