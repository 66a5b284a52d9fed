import { CLOSE_CODES } from '../../protocol/close-codes.ts';
import { faultOfFrame } from '../../testing/frame-check.ts';
import type { RawClient } from './raw-client.ts';

const OURS: ReadonlySet<number> = new Set(Object.values(CLOSE_CODES).map(({ code }) => code));

/** Whether a close code is in the catalogue. */
export const isOurs = (code: number): boolean => OURS.has(code);

/** The first undocumented answer to a connection; undefined if all are documented. */
export function faultOfAnswers({ frames, violation }: RawClient): string | undefined {
  const broken = violation();
  if (broken !== undefined) return broken;
  for (const frame of frames) {
    const fault = faultOfFrame(frame);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
