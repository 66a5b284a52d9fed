import type { Offsets } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import type { LogPills } from './log-replay.ts';

/** What a resume request comes to. */
export type Reached =
  /** Nothing was asked for. */
  { readonly kind: 'nothing' } | { readonly kind: 'refused'; readonly reason: NotRecovered } | Held;

/** All pills after these offsets are in the backlog, or in `past`, if not forgotten since. */
export interface Held {
  readonly kind: 'reached';
  readonly after: Offsets;
  readonly notBefore: Micros;
  /** What was read from the log for this request; of use in the same turn alone. */
  readonly past?: LogPills;
}
