import type { ServerResponse } from 'node:http';
import { isBackfill } from '../../domain/order/time.ts';
import type { Pill } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { ParameterFault } from '../http/parameter-fault.ts';
import { API_VERSION } from '../http/problems.ts';
import type { Intake } from './intake.ts';
import { warningOf } from './warnings.ts';

/**
 * Whether the query asks for a dry run, or its fault: a mistyped parameter must not store pills that
 * were meant for one.
 */
export function readDryRun(url: string): boolean | ParameterFault {
  const at = url.indexOf('?');
  const query = new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
  const [value = 'false', ...others] = query.getAll('validate_only');
  const stranger = [...query.keys()].find((name) => name !== 'validate_only');
  if (stranger !== undefined) {
    const detail = 'Unknown here. Known: validate_only.';
    const parameter = stranger.slice(0, 64).toWellFormed();
    return { parameter, code: 'parameter_unknown', detail };
  }
  const fault = {
    parameter: 'validate_only',
    detail: '`validate_only` must be true or false, and given once.',
  };
  if (others.length > 0) return { ...fault, code: 'parameter_repeated' };
  if (value === 'true' || value === 'false') return value === 'true';
  return { ...fault, code: 'not_a_choice' };
}

/** What would become of a valid pill. */
export interface Preview {
  readonly outcome: 'accepted' | 'repeated';
  readonly backfill: boolean;
  /** Codes, as in the header `Pill-Warning`. */
  readonly warnings: readonly string[];
}

/** @param kind `stored`: this process knows the pill */
export function previewOf(
  pill: Pill,
  kind: 'new' | 'stored',
  receivedAt: Micros,
  intake: Intake,
): Preview {
  const backfill = isBackfill(pill.timestamp, receivedAt, intake.settings.backfill_age_ms);
  const warnings = warningOf([pill], receivedAt, intake)?.split(', ') ?? [];
  return { outcome: kind === 'new' ? 'accepted' : 'repeated', backfill, warnings };
}

/** What only the log decides, as part of each answer to a dry run. */
const NOT_KNOWN =
  'Late is decided by the log. A pill that another ingest process, a direct producer or an earlier ' +
  'run of this process has stored may be a repeat or a conflict. The log was not asked.';

/** Answers a dry run. @param what would happen */
export function sendPreview(
  response: ServerResponse,
  what: object,
  warning: string | undefined,
): void {
  const answer = { validate_only: true, stored: 'no', ...what, late: null, not_known: NOT_KNOWN };
  const body = Buffer.from(JSON.stringify(answer));
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    'api-version': API_VERSION,
    ...(warning === undefined ? {} : { 'pill-warning': warning }),
  });
  response.end(body);
}
