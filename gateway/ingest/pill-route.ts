import { parseStrictJson } from '../../lib/strict-json.ts';
import type { Fault } from '../../schemas/fault.ts';
import { type Pill, parsePill } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { isJsonType } from '../http/media-type.ts';
import { API_VERSION } from '../http/problems.ts';
import type { Intake, Outcome } from './intake.ts';
import { INGEST_LIMITS } from './limits.ts';
import { answerSeconds, countPills, countRequest } from './metrics.ts';
import { type Endpoint, type Received, type Response, refuse } from './receive.ts';

const OK_BODY = '{"status":"ok"}';
const OK_LENGTH = String(OK_BODY.length);

/** `POST /api/pillole`: one pill. `intake` is undefined until the log was reached. */
export function createPillEndpoint(intake: () => Intake | undefined): Endpoint {
  return {
    bytesMax: INGEST_LIMITS.pillBytesMax,
    isType: isJsonType,
    types: 'application/json',
    handle(received) {
      const target = intake();
      if (target === undefined) return refuseStarting(received.response);
      const parsed = readPill(received.body, target, received.receivedAt);
      if ('faults' in parsed) {
        countPills('refused');
        const errors = parsed.faults.slice(0, INGEST_LIMITS.faultsToldMax);
        return refuse(received.response, 'pill_invalid', { errors });
      }
      const sentAt = performance.now();
      const { source, receivedAt, at } = received;
      const deadline = at + INGEST_LIMITS.answerMs;
      return target
        .submit(parsed.pill, { source, receivedAt, deadline })
        .then((outcome) => answer(received, outcome, sentAt));
    },
  };
}

export function refuseStarting(response: Response): undefined {
  const detail = 'This process has not reached the log yet.';
  return refuse(response, 'log_unavailable', { detail, retry_after_s: 1 });
}

/** `value` is what the text held, as far as it was JSON. */
export type ReadPill =
  | { readonly pill: Pill }
  | { readonly faults: readonly Fault[]; readonly value: unknown };

/** Reads one pill out of one JSON text, with every fault of both at once. */
export function readPill(
  text: Buffer,
  { settings, skew }: Pick<Intake, 'settings' | 'skew'>,
  receivedAt: Micros,
): ReadPill {
  const rules = { confidenceMax: settings.confidence_max, now: skew.checkedClock(receivedAt) };
  const json = parseStrictJson(text, INGEST_LIMITS.jsonDepthMax);
  if (json.ok) {
    const parsed = parsePill(json.value, rules);
    return parsed.ok ? { pill: parsed.pill } : { faults: parsed.faults, value: json.value };
  }
  const { value } = json;
  if (value === undefined) return { faults: json.faults, value };
  const parsed = parsePill(value, rules);
  return { faults: joinFaults(json.faults, parsed.ok ? [] : parsed.faults), value };
}

/** Faults of the text, then those of the pill that say something new. */
export function joinFaults(text: readonly Fault[], pill: readonly Fault[]): readonly Fault[] {
  const isNew = ({ pointer, code }: Fault) =>
    !text.some((known) => known.pointer === pointer && known.code === code);
  return [...text, ...pill.filter(isNew)];
}

function answer({ response, at }: Received, outcome: Outcome, sentAt: number): void {
  const now = performance.now();
  answerSeconds.observe((now - at) / 1000);
  if (outcome.kind !== 'stored') {
    countPills(outcome.kind);
    refuseOutcome(response, outcome);
    return;
  }
  const { known, replayed } = outcome;
  const label = replayed ? 'replayed' : 'ok';
  countRequest(label);
  countPills(label);
  // An array goes out as it is, in Node; an object is copied name by name.
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
  if (replayed) headers.push('idempotent-replayed', 'true');
  response.writeHead(200, headers);
  response.end(OK_BODY);
}

function refuseOutcome(
  response: Response,
  outcome: Exclude<Outcome, { kind: 'stored' }>,
): undefined {
  switch (outcome.kind) {
    case 'conflict': {
      const stored_cursor = `${outcome.known.partition}-${outcome.known.offset}`;
      return refuse(response, 'id_conflict', { stored_cursor });
    }
    case 'symbol_limit':
      return refuse(response, 'symbol_limit');
    case 'overloaded':
      return refuse(response, 'overloaded', { retry_after_s: 1 });
    case 'unavailable':
      return refuse(response, 'log_unavailable', { stored: 'unknown', retry_after_s: 1 });
  }
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
