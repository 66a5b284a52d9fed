import type { Log } from '../../lib/log/log.ts';

/** Lines about failed answers in a second; further ones are counted in the next line. */
export const FAILURE_LINES_PER_S_MAX = 10;

export type AnswerLog = ReturnType<typeof createAnswerLog>;

/**
 * Logs answers: those of 5xx as warnings, at most ten a second, since an outage fails every request;
 * all others at the level `debug`.
 */
export function createAnswerLog(log: Log) {
  let second = 0;
  let written = 0;
  let left_out = 0;
  const mayWrite = () => {
    const now = Math.floor(performance.now() / 1_000);
    if (now !== second) written = 0;
    second = now;
    written += 1;
    return written <= FAILURE_LINES_PER_S_MAX;
  };
  return {
    /** @param fields made only if the line is written; never a credential, a URL or a body */
    note(status: number, fields: () => object): void {
      if (status < 500) {
        if (log.isLevelEnabled('debug')) log.debug({ status, ...fields() }, 'answered');
      } else if (mayWrite()) {
        log.warn({ status, ...fields(), ...(left_out === 0 ? {} : { left_out }) }, 'answered');
        left_out = 0;
      } else left_out += 1;
    },
  };
}
