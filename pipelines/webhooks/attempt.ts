import { createCounter, createHistogram, LATENCY_BUCKETS_S } from '../../lib/metrics.ts';
import type { WebhookMessage } from '../../lib/webhooks/message.ts';
import type { Sender, SendResult } from '../../lib/webhooks/sender.ts';
import { signatureOf } from '../../lib/webhooks/signature.ts';
import type { AttemptLog } from './attempt-log.ts';
import type { Listener } from './audience.ts';
import type { Health } from './health.ts';
import type { AttemptVerdict } from './verdict.ts';

const attemptsTotal = createCounter({
  name: 'pillole_webhook_attempts_total',
  help: 'Attempts to deliver a message, by what became of them.',
  labelNames: ['outcome'] as const,
});
const sinceReceived = createHistogram({
  name: 'pillole_webhook_since_received_seconds',
  help: 'From the receive time of a message’s oldest pill to the begin of its first attempt.',
  buckets: LATENCY_BUCKETS_S,
});

/** Makes attempts: signed, sent, judged, logged. */
export interface Attempter {
  /** @param attempt which one at this message, from 1 @param isLast a failure gives it up */
  attempt(
    listener: Listener,
    message: WebhookMessage,
    attempt: number,
    isLast?: boolean,
  ): Promise<AttemptVerdict>;
  /** Logs that a message became too old for its endpoint. */
  expired(listener: Listener, message: WebhookMessage, attempts: number): void;
}

const USER_AGENT = 'pillole-webhooks/1';

export function createAttempter(parts: {
  readonly sender: Sender;
  readonly log: AttemptLog;
  readonly health: Health;
}): Attempter {
  const { sender, log, health } = parts;
  return {
    async attempt(listener, message, attempt, isLast = false) {
      const at = Date.now();
      const standing = listener.standing(at);
      const isWanted = standing === 'enabled' || (standing === 'pending' && isTest(message));
      if (!isWanted) return { kind: 'unwanted' };
      // Both now: a change amid the attempt must not have the old URL answer the new challenge.
      const { endpoint, challenge } = listener;
      // The timestamp is that of the attempt: a receiver refuses old ones (Standard Webhooks 1.0).
      const timestampS = Math.floor(at / 1_000);
      const secrets = listener.secretsAt(at);
      const result = await sender.send(
        { endpointId: listener.id, url: endpoint.url, headers: listener.headers },
        {
          'content-type': 'application/json',
          'user-agent': USER_AGENT,
          'webhook-id': message.id,
          'webhook-timestamp': String(timestampS),
          'webhook-signature': signatureOf(secrets, message.id, timestampS, message.body),
        },
        message.body,
      );
      if (result.kind === 'failed' && result.reason === 'stopped') return { kind: 'stopped' };
      const verdict = judge(challenge, message, result);
      const isDelivered = verdict.kind === 'delivered';
      if (verdict.kind === 'delivered')
        health.succeeded(listener, isTest(message) ? challenge : undefined);
      else health.failed(listener, verdict);
      const outcome = isDelivered ? 'delivered' : isLast ? 'failed' : 'retry';
      attemptsTotal.inc({ outcome });
      const sinceMs = message.pills > 0 ? Math.max(0, at - message.occurredAt / 1_000) : 0;
      if (message.pills > 0 && attempt === 1) sinceReceived.observe(sinceMs / 1_000);
      log.add({
        ...{ account_id: endpoint.accountId, endpoint_id: listener.id, at: at * 1_000 },
        ...{ message_id: message.id, event_type: message.type, pills: message.pills },
        ...{ attempt, outcome, status: result.kind === 'answered' ? result.status : 0 },
        reason: isDelivered ? '' : verdict.reason,
        detail: detailOf(result, verdict),
        latency_us: result.latencyUs,
        since_received_us: Math.round(sinceMs * 1_000),
        answer: result.kind === 'answered' ? result.answer : '',
        body: attempt === 1 ? message.body : '',
      });
      return verdict;
    },
    expired(listener, message, attempts) {
      const { endpoint } = listener;
      attemptsTotal.inc({ outcome: 'expired' });
      const since = Math.max(0, Date.now() * 1_000 - message.occurredAt);
      log.add({
        ...{ account_id: endpoint.accountId, endpoint_id: listener.id, at: Date.now() * 1_000 },
        ...{ message_id: message.id, event_type: message.type, pills: message.pills },
        ...{ attempt: attempts, outcome: 'expired', status: 0, reason: 'too_old' },
        detail: `It was older than max_age_s, ${endpoint.maxAgeS} s: recover it, or replay its range.`,
        ...{ latency_us: 0, since_received_us: since, answer: '' },
        body: attempts === 0 ? message.body : '',
      });
    },
  };
}

/** Whether a message asks for the challenge. */
export function isTest({ type }: WebhookMessage): boolean {
  return type === 'endpoint.test';
}

type Judged = Exclude<AttemptVerdict, { kind: 'stopped' | 'unwanted' }>;

function judge(challenge: string, message: WebhookMessage, result: SendResult): Judged {
  if (result.kind === 'failed') {
    return { ...result, kind: 'failed', status: undefined, retryAfterS: undefined };
  }
  const { status, retryAfterS, answer } = result;
  if (status < 200 || status > 299) {
    return { kind: 'failed', status, reason: reasonOf(status), retryAfterS };
  }
  // A mere 2xx could be a stranger's page that answers so to everything: it would be flooded.
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

function detailOf(result: SendResult, verdict: Judged): string {
  if (result.kind === 'failed') return result.detail;
  if (verdict.kind === 'delivered') return '';
  if (verdict.reason === 'challenge_missing') {
    return 'The answer does not contain data.challenge of the body: answer with it, or echo the body.';
  }
  if (verdict.reason === 'gone') {
    return 'It answered 410 Gone, so the endpoint is disabled: enable it by PATCH, and it is tested.';
  }
  if (verdict.reason === 'redirect') return 'Redirects are not followed: give the final URL.';
  return `It answered ${result.status}; only 2xx counts as delivered.`;
}
