import { parseStrictJson } from '../../lib/json/strict-json.ts';
import type { Fault } from '../../schemas/fault.ts';
import { type Pill, parsePill } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { isJsonType } from '../http/media-type.ts';
import { API_VERSION } from '../http/problems.ts';
import { answers } from './answers.ts';
import { previewOf, sendPreview } from './dry-run.ts';
import type { Intake, Outcome } from './intake.ts';
import { INGEST_LIMITS } from './limits.ts';
import { answerSeconds, countPills, countRequest } from './metrics.ts';
import { type IngestRoute, type Received, type Refusable, refuse } from './receive.ts';
import { refusals } from './refusals.ts';
import { warningOf } from './warnings.ts';

const OK_BODY = '{"status":"ok"}';
const OK_LENGTH = String(OK_BODY.length);

/** `POST /api/pillole`: one pill. */
export const PILL_ROUTE: IngestRoute = {
  path: '/api/pillole',
  bytesMax: INGEST_LIMITS.pillBytesMax,
  isType: isJsonType,
  types: 'application/json',
  handle(received, intake) {
    const parsed = readPill(received.body, intake, received.receivedAt);
    if ('faults' in parsed) {
      countPills('refused');
      const errors = parsed.faults.slice(0, INGEST_LIMITS.faultsMax);
      return refuse(received, 'pill_invalid', { errors });
    }
    const warning = warningOf([parsed.pill], received.receivedAt, intake);
    if (received.isDryRun) return preview(received, parsed.pill, intake, warning);
    const sentAt = performance.now();
    const { source, receivedAt, at } = received;
    const deadline = at + INGEST_LIMITS.answerMs;
    return intake
      .submit(parsed.pill, { source, receivedAt, deadline })
      .then((outcome) => answer(received, parsed.pill, outcome, sentAt, warning));
  },
};

/** The rules by which the pills of a request are checked. */
export const pillRules = ({ settings, skew }: Intake, receivedAt: Micros) => ({
  confidenceMax: settings.confidence_max,
  now: skew.checkedClock(receivedAt),
});

/**
 * Parses one pill from JSON text; collects every fault of the text and of the pill.
 * @returns the pill, or its faults with the value as far as the text is JSON
 */
export function readPill(
  text: Buffer,
  intake: Intake,
  receivedAt: Micros,
): { readonly pill: Pill } | { readonly faults: readonly Fault[]; readonly value: unknown } {
  const json = parseStrictJson(text, INGEST_LIMITS.jsonDepthMax);
  const { value } = json;
  const textFaults = json.ok ? [] : json.faults;
  if (!json.ok && value === undefined) return { faults: textFaults, value };
  const parsed = parsePill(value, pillRules(intake, receivedAt));
  if (json.ok && parsed.ok) return { pill: parsed.pill };
  return { faults: joinFaults(textFaults, parsed.ok ? [] : parsed.faults), value };
}

/** Faults of the text, then the faults of the pill that the text does not have already. */
export function joinFaults(text: readonly Fault[], pill: readonly Fault[]): readonly Fault[] {
  const isNew = ({ pointer, code }: Fault) =>
    !text.some((known) => known.pointer === pointer && known.code === code);
  return [...text, ...pill.filter(isNew)];
}

function answer(
  received: Received,
  { id: pillId }: Pill,
  outcome: Outcome,
  sentAt: number,
  warning: string | undefined,
): void {
  const { response, at, source, receivedAt } = received;
  const now = performance.now();
  answerSeconds.observe((now - at) / 1000);
  if (outcome.kind !== 'stored') {
    countPills(outcome.kind);
    refuseOutcome({ ...received, pillId }, outcome);
    return;
  }
  const { known, replayed } = outcome;
  const label = replayed ? 'replayed' : 'ok';
  countRequest(label);
  countPills(label);
  // Node writes an array unchanged, but copies an object name by name.
  const headers = [
    'content-type',
    'application/json; charset=utf-8',
    'content-length',
    OK_LENGTH,
    'api-version',
    API_VERSION,
    'pill-cursor',
    `${known.partition}-${known.offset}`,
    'server-timing',
    `parse;dur=${tenths(sentAt - at)}, log;dur=${tenths(now - sentAt)}`,
  ];
  if (replayed) {
    headers.push('idempotent-replayed', 'true');
    refusals.note({ source, code: 'replayed', at: receivedAt });
  }
  if (warning !== undefined) headers.push('pill-warning', warning);
  response.writeHead(200, headers);
  response.end(OK_BODY);
  const { partition, offset } = known;
  answers.note(200, () => ({
    pill_id: pillId,
    source,
    cursor: `${partition}-${offset}`,
    replayed,
  }));
}

/** Answers a dry run with what would happen, as far as this process can know it. */
function preview(
  received: Received,
  pill: Pill,
  intake: Intake,
  warning: string | undefined,
): undefined {
  const outcome = intake.preview(pill);
  if (outcome.kind !== 'new' && outcome.kind !== 'stored') return refuseOutcome(received, outcome);
  sendPreview(
    received.response,
    previewOf(pill, outcome.kind, received.receivedAt, intake),
    warning,
  );
}

function refuseOutcome(
  received: Refusable,
  outcome: Exclude<Outcome, { kind: 'stored' }>,
): undefined {
  switch (outcome.kind) {
    case 'conflict': {
      const stored_cursor = `${outcome.known.partition}-${outcome.known.offset}`;
      return refuse(received, 'id_conflict', { stored_cursor });
    }
    case 'symbol_limit':
      return refuse(received, 'symbol_limit');
    case 'overloaded':
      return refuse(received, 'overloaded', { retry_after_s: 1 });
    case 'unavailable':
      return refuse(received, 'log_unavailable', { stored: 'unknown', retry_after_s: 1 });
  }
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
