/** Every `reason` of `subscribed` and `gap`: why a resume was not possible. Never renamed. */
export const RESUME_REASONS = {
  epoch_unknown: { meaning: 'The position is of another log.' },
  partition_unknown: { meaning: 'The position names a partition that the log does not have.' },
  position_ahead: { meaning: 'The position lies ahead of the log.' },
  position_expired: { meaning: 'The log does not hold all that came since any more.' },
  too_many_missed: { meaning: 'More came since than one replay carries, or reads from the log.' },
  replay_busy: { meaning: 'Too many resume at this moment, of this account or of all.' },
  chaos: { meaning: 'TEST:CHAOS holds nothing of what it plays.' },
  log_unavailable: { meaning: 'The log could not be read.' },
} as const satisfies Readonly<Record<string, { readonly meaning: string }>>;

export type NotRecovered = keyof typeof RESUME_REASONS;
