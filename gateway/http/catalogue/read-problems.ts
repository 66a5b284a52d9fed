import { problemTypes } from './problem-type.ts';

/** Problems of reading pills, history and analytics. */
export const READ_PROBLEMS = problemTypes({
  no_pill: {
    status: 404,
    title: 'No pill yet',
    meaning: 'No pill of this symbol, or no pill at all, was ever received.',
    remedy: 'Check the symbol; pills appear as soon as the generator sends one.',
  },
  position_unknown: {
    status: 410,
    title: 'This position is from another log',
    meaning:
      'The epoch or a partition of the position does not exist here, so the position cannot be ' +
      'compared with this log.',
    remedy: 'Take a new position from any answer, and read the pills in between from history.',
  },
  position_ahead: {
    status: 409,
    title: 'The position is beyond the end of the log',
    meaning:
      'The log ends before this position: `position` is its end. The position was mistyped, or is ' +
      'of a log that lost its end.',
    remedy: 'Continue from `position`. What lies between the two positions does not exist.',
  },
  position_not_reached: {
    status: 503,
    title: 'The position was not reached in time',
    meaning: 'The view did not reach the requested position within 1 s.',
    remedy: 'Send the request again after `Retry-After`, with a position from an earlier answer.',
  },
  grant_invalid: {
    status: 403,
    title: 'The grant was refused',
    meaning:
      'The grant has expired, or was issued for another account or range. The call was not ' +
      'counted.',
    remedy:
      'Use the call of the gap frame unchanged, or omit `grant`; without a grant the call counts.',
  },
  history_behind: {
    status: 503,
    title: 'History is behind',
    meaning:
      'Not all pills up to `until` are stored yet; nothing is omitted silently. `position` says ' +
      'how far history has come.',
    remedy:
      'Send the request again after `Retry-After`, or set `until` to `position`. Pills are ' +
      'stored within seconds; GET /api/pills/latest is not behind.',
  },
  history_unavailable: {
    status: 503,
    title: 'History is unavailable',
    meaning: 'The history database does not answer. Streams and the latest pills still work.',
    remedy: 'Send the request again after `Retry-After`; pages that you already have stay valid.',
  },
  history_too_heavy: {
    status: 400,
    title: 'The page is too heavy',
    meaning: 'Reading this page exceeded the limits of time, memory or pills for one page.',
    remedy: 'Ask for less at a time: a smaller `limit`, a shorter range, or one symbol.',
  },
  export_limit: {
    status: 429,
    title: 'Too many exports',
    meaning: 'The account has as many exports open, or created in 24 h, as it may have.',
    remedy: 'Wait until an export is over, or cancel one: DELETE /api/exports/{id}.',
  },
  export_storage_full: {
    status: 503,
    title: 'No space for exports',
    meaning: 'The files of all exports, which are kept for 24 h, take all the space they may take.',
    remedy: 'Remove exports that you have downloaded, ask for less, or try again later.',
  },
  link_invalid: {
    status: 403,
    title: 'The link is not valid',
    meaning: 'The link was changed or has expired, or its key or the subscription has ended.',
    remedy: 'Take a new link from GET /api/exports/{id}.',
  },
  range_not_satisfiable: {
    status: 416,
    title: 'The file ends before this range',
    meaning: 'The requested bytes are beyond the end of the file; `Content-Range` has its length.',
    remedy: 'Request a range within the file, or the whole file without `Range`.',
  },
  query_too_large: {
    status: 400,
    title: 'The query is too large',
    meaning: 'Answering this query exceeded the limits of time, memory or pills for one query.',
    remedy: 'Ask for a shorter time range, such as the one in `try`, or for fewer symbols.',
  },
  analytics_unavailable: {
    status: 503,
    title: 'Analytics are unavailable',
    meaning: 'The analytics database does not answer. Streams and the latest pills still work.',
    remedy: 'Send the request again after `Retry-After`.',
  },
});
