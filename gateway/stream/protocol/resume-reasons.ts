/** Why a resume was not possible: `reason` of `subscribed` and `gap`. Contract: never renamed. */
export const RESUME_REASONS = {
  epoch_unknown: { meaning: 'The position belongs to another log.' },
  partition_unknown: { meaning: 'The position names a partition that the log does not have.' },
  position_ahead: { meaning: 'The position is ahead of the log.' },
  position_expired: { meaning: 'The log no longer holds all pills since the position.' },
  too_many_missed: {
    meaning: 'More pills have arrived since than one replay can carry or read from the log.',
  },
  replay_busy: { meaning: 'Too many resumes are in progress, for this account or in total.' },
  chaos: { meaning: '`TEST:CHAOS` keeps no history of the pills it sends.' },
  log_unavailable: { meaning: 'The log could not be read.' },
} as const satisfies Readonly<Record<string, { readonly meaning: string }>>;

export type ResumeReason = keyof typeof RESUME_REASONS;
