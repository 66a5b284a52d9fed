import type { AttemptRow } from '../../domain/webhooks/deliveries/attempt-rows.ts';
import type { WebhookMessage } from '../../domain/webhooks/events/webhook-message.ts';
import { signatureOf } from '../../domain/webhooks/secrets/signature.ts';
import type { Sender, SendResult } from '../../domain/webhooks/send/webhook-sender.ts';
import type { Log } from '../../lib/log/log.ts';
import { createCounter, createHistogram, LATENCY_BUCKETS_S } from '../../lib/metrics/metrics.ts';
import type { AttemptLog } from './attempt-log.ts';
import type { AttemptResult } from './endpoints/attempt-result.ts';
import type { EndpointHealth } from './endpoints/endpoint-health.ts';
import type { RegisteredEndpoint } from './endpoints/registered-endpoint.ts';

const attemptsTotal = createCounter({
  name: 'pillole_webhook_attempts_total',
  help: 'Attempts to deliver a message, by outcome.',
  labelNames: ['outcome'] as const,
});
const egressDownTotal = createCounter({
  name: 'pillole_webhook_egress_down_total',
  help: 'Attempts that failed because the egress proxy could not be reached.',
});
export const sinceReceived = createHistogram({
  name: 'pillole_webhook_since_received_seconds',
  help: 'From the receive time of a message’s oldest pill to the start of its first attempt.',
  buckets: LATENCY_BUCKETS_S,
});

export type Attempter = ReturnType<typeof createAttempter>;

const USER_AGENT = 'pillole-webhooks/1';

/** Makes attempts: signs, sends, judges the answer, updates health, logs. */
export function createAttempter({
  sender,
  log,
  lines,
  health,
}: {
  readonly sender: Sender;
  readonly log: AttemptLog;
  /** The log of the process: a line for each attempt at the level `debug`. */
  readonly lines: Log;
  readonly health: EndpointHealth;
}) {
  return {
    /** @param attempt counted from 1 @param isLast the message is given up if this attempt fails */
    async attempt(
      endpoint: RegisteredEndpoint,
      message: WebhookMessage,
      attempt: number,
      isLast = false,
    ): Promise<AttemptResult> {
      const atMs = Date.now();
      const state = endpoint.state(atMs);
      const isDue = state === 'enabled' || (state === 'pending' && isTest(message));
      if (!isDue) return { kind: 'unwanted' };
      // Read before the attempt: if the URL changes meanwhile, the old receiver's answer must not
      // count as an answer to the new challenge.
      const { challenge } = endpoint;
      const line = lineOf(endpoint, message, atMs);
      const result = await send(sender, endpoint, message, atMs);
      if (result.kind === 'failed' && result.reason === 'stopped') return { kind: 'stopped' };
      const judged = judge(challenge, message, result);
      // If our proxy is down, the endpoint is not at fault.
      const isOurs = judged.kind === 'failed' && judged.reason === 'egress_down';
      if (isOurs) egressDownTotal.inc();
      else if (judged.kind === 'failed') health.failed(endpoint, judged);
      else health.succeeded(endpoint, isTest(message) ? challenge : undefined);
      const outcome = judged.kind === 'delivered' ? 'delivered' : isLast ? 'failed' : 'retry';
      attemptsTotal.inc({ outcome });
      if (message.pills > 0 && attempt === 1) sinceReceived.observe(line.since_received_us / 1e6);
      log.add({
        ...line,
        attempt,
        outcome,
        ...answerOf(result, judged),
        body: attempt === 1 ? message.body : '',
      });
      logAttempt(lines, endpoint, message, { attempt, outcome });
      return judged;
    },
    /** Logs that a message became too old for its endpoint. */
    expired(endpoint: RegisteredEndpoint, message: WebhookMessage, attempts: number): void {
      attemptsTotal.inc({ outcome: 'expired' });
      const nowMs = Date.now();
      const { maxAgeS } = endpoint.settings;
      log.add({
        ...lineOf(endpoint, message, nowMs),
        since_received_us: Math.max(0, nowMs * 1_000 - message.occurredAt),
        attempt: attempts,
        outcome: 'expired',
        status: 0,
        reason: 'too_old',
        detail: `The message is older than max_age_s (${maxAgeS} s). Recover it, or replay its range.`,
        latency_us: 0,
        answer: '',
        body: attempts === 0 ? message.body : '',
      });
    },
  };
}

/** The part of a log line that is known after the attempt. */
function answerOf(result: SendResult, judged: Judged) {
  return {
    status: result.kind === 'answered' ? result.status : 0,
    reason: judged.kind === 'failed' ? judged.reason : '',
    detail: detailOf(result, judged),
    latency_us: result.latencyUs,
    answer: result.kind === 'answered' ? result.answer : '',
  } satisfies Partial<AttemptRow>;
}

function logAttempt(
  lines: Log,
  { id: endpoint }: RegisteredEndpoint,
  message: WebhookMessage,
  of: { readonly attempt: number; readonly outcome: string },
): void {
  if (!lines.isLevelEnabled('debug')) return;
  const fields = { message_id: message.id, pill_ids: pillIdsOf(message), endpoint };
  lines.debug({ ...fields, ...of }, 'attempted');
}

/** Ids of the pills that a message carries. */
function pillIdsOf({ pills, body }: WebhookMessage): readonly string[] {
  if (pills === 0) return [];
  const { data } = JSON.parse(body) as { data: { id?: string; pills?: { id: string }[] } };
  return data.pills?.map(({ id }) => id) ?? [data.id!];
}

/** Whether a message asks for the challenge. */
export function isTest({ type }: WebhookMessage): boolean {
  return type === 'endpoint.test';
}

/** The part of a log line that is known before the attempt. */
function lineOf({ id, settings }: RegisteredEndpoint, message: WebhookMessage, atMs: number) {
  const sinceMs = message.pills > 0 ? Math.max(0, atMs - message.occurredAt / 1_000) : 0;
  return {
    account_id: settings.accountId,
    endpoint_id: id,
    at: atMs * 1_000,
    message_id: message.id,
    event_type: message.type,
    pills: message.pills,
    since_received_us: Math.round(sinceMs * 1_000),
  } satisfies Partial<AttemptRow>;
}

function send(
  sender: Sender,
  endpoint: RegisteredEndpoint,
  message: WebhookMessage,
  atMs: number,
): Promise<SendResult> {
  // The timestamp is the time of the attempt: receivers refuse old timestamps (Standard Webhooks
  // 1.0).
  const timestampS = Math.floor(atMs / 1_000);
  const secrets = endpoint.secretsAt(atMs);
  return sender.send(
    { endpointId: endpoint.id, url: endpoint.settings.url, headers: endpoint.headers },
    {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      'webhook-id': message.id,
      'webhook-timestamp': String(timestampS),
      'webhook-signature': signatureOf(secrets, message.id, timestampS, message.body),
    },
    message.body,
  );
}

type Judged = Extract<AttemptResult, { kind: 'delivered' | 'failed' }>;

function judge(challenge: string, message: WebhookMessage, result: SendResult): Judged {
  if (result.kind === 'failed') {
    return { kind: 'failed', status: undefined, reason: result.reason, retryAfterS: undefined };
  }
  const { status, retryAfterS, answer } = result;
  if (status < 200 || status > 299) {
    return { kind: 'failed', status, reason: reasonOf(status), retryAfterS };
  }
  // A bare 2xx may come from an unrelated site that answers every request like this; pills would
  // flood the site.
  if (isTest(message) && !answer.includes(challenge)) {
    return { kind: 'failed', status, reason: 'challenge_missing', retryAfterS: undefined };
  }
  return { kind: 'delivered' };
}

function reasonOf(status: number): string {
  if (status === 410) return 'gone';
  if (status === 429) return 'too_many_requests';
  return status >= 300 && status < 400 ? 'redirect' : 'status';
}

function detailOf(result: SendResult, judged: Judged): string {
  if (result.kind === 'failed') return result.detail;
  if (judged.kind === 'delivered') return '';
  if (judged.reason === 'challenge_missing') {
    return 'The answer does not contain data.challenge. Answer with the challenge, or echo the body.';
  }
  if (judged.reason === 'gone') {
    return 'The endpoint answered 410 Gone and was disabled. Enable it by PATCH to have it tested again.';
  }
  if (judged.reason === 'redirect') return 'Redirects are not followed. Set the final URL.';
  return `The endpoint answered ${result.status}; only 2xx counts as delivered.`;
}
