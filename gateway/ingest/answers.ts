import type { Log } from '../../lib/log/log.ts';
import { type AnswerLog, createAnswerLog } from '../http/answer-log.ts';

let lines: AnswerLog | undefined;

/** The log of the answers of this process. */
export const answers = {
  /** Writes to this log from now on. */
  open(log: Log): void {
    lines = createAnswerLog(log);
  },
  note(status: number, fields: () => object): void {
    lines?.note(status, fields);
  },
};
