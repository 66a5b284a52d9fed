import { newId } from '../../../domain/access/id.ts';
import { retryWaitS } from '../../../domain/webhooks/deliveries/retry-schedule.ts';
import {
  joinedMessage,
  pillMessage,
  type WebhookMessage,
} from '../../../domain/webhooks/events/webhook-message.ts';
import type { Attempter } from '../attempt.ts';
import type { NewDelivery } from '../delivery-changes.ts';
import type { DeliveryWriter } from '../delivery-writer.ts';
import type { AttemptResult } from '../endpoints/attempt-result.ts';
import type { RegisteredEndpoint } from '../endpoints/registered-endpoint.ts';
import { LIMITS } from '../limits.ts';
import { encodedOf, type QueuedPill, rangesOf, settleAll } from './queued-pill.ts';

export interface FirstAttemptDeps {
  readonly epoch: string;
  readonly attempter: Attempter;
  readonly writer: DeliveryWriter;
}

/**
 * Attempts one pill as its own message. Its id follows from its offset, so nothing must be written
 * first; a pill without an answer after a second is stored and no longer holds up the log.
 */
export async function sendAlone(
  endpoint: RegisteredEndpoint,
  pill: QueuedPill,
  { epoch, attempter, writer }: FirstAttemptDeps,
): Promise<void> {
  const message = pillMessage(epoch, pill.encoded);
  const delivery = { ...newDelivery(endpoint, message), nextInS: LIMITS.leaseS };
  let storing: Promise<boolean> | undefined;
  const unanswered = setTimeout(() => {
    storing = writer.apply({ kind: 'store', delivery });
    void storing.then((isStored) => isStored && pill.settle());
  }, LIMITS.storeAfterMs);
  const result = await attempter.attempt(endpoint, message, 1);
  clearTimeout(unanswered);
  const isStored = storing === undefined ? false : await storing;
  if (await recordResult(endpoint, message, result, isStored, writer)) pill.settle();
}

/**
 * Stores a message that joins pills, then attempts it: after a crash the same pills must not be
 * joined differently under another id. @returns whether it was stored; false: nothing was sent
 */
export async function sendJoined(
  endpoint: RegisteredEndpoint,
  pills: readonly QueuedPill[],
  { attempter, writer }: FirstAttemptDeps,
): Promise<boolean> {
  const message = joinedMessage(newId('msg'), encodedOf(pills));
  const joined = rangesOf(pills);
  const delivery = { ...newDelivery(endpoint, message), nextInS: LIMITS.leaseS, joined };
  if (!(await writer.apply({ kind: 'store', delivery }))) return false;
  settleAll(pills);
  const result = await attempter.attempt(endpoint, message, 1);
  await recordResult(endpoint, message, result, true, writer);
  return true;
}

/**
 * Stores pills that were not attempted, to be delivered or recovered later.
 * @returns whether the pills are settled: stored, or discarded because too many messages wait
 */
export async function storeUnattempted(
  endpoint: RegisteredEndpoint,
  pills: readonly QueuedPill[],
  status: NewDelivery['status'],
  nextInS: number,
  { epoch, attempter, writer }: FirstAttemptDeps,
): Promise<boolean> {
  const [first] = pills;
  if (!endpoint.hasRoom()) {
    endpoint.discard(first!.encoded.receivedAt, pills.length);
    settleAll(pills);
    return true;
  }
  const message =
    pills.length === 1 && first!.isAlone
      ? pillMessage(epoch, first!.encoded)
      : joinedMessage(newId('msg'), encodedOf(pills));
  const isExpired = status === 'expired';
  const delivery: NewDelivery = {
    ...newDelivery(endpoint, message),
    status,
    nextInS,
    wakes: !isExpired,
    lastReason: isExpired ? 'too_old' : undefined,
    joined: rangesOf(pills),
  };
  if (!(await writer.apply({ kind: 'store', delivery }))) return false;
  if (isExpired) attempter.expired(endpoint, message, 0);
  settleAll(pills);
  return true;
}

/** @returns whether the message is settled: delivered, stored, or unwanted */
async function recordResult(
  endpoint: RegisteredEndpoint,
  message: WebhookMessage,
  result: AttemptResult,
  isStored: boolean,
  writer: DeliveryWriter,
): Promise<boolean> {
  const ids = { endpointId: endpoint.id, messageId: message.id };
  if (result.kind === 'stopped') return isStored;
  if (result.kind === 'unwanted') return true;
  if (result.kind === 'delivered') {
    // If the deletion fails, the message is sent once more under the same id.
    if (isStored) await writer.apply({ kind: 'delivered', ...ids });
    return true;
  }
  const last = { attempts: 1, lastStatus: result.status, lastReason: result.reason };
  const nextInS = retryWaitS(1, result.retryAfterS)!;
  if (isStored) return writer.apply({ kind: 'failed', ...ids, next: nextInS, ...last });
  const delivery = { ...newDelivery(endpoint, message), nextInS, wakes: true, ...last };
  return writer.apply({ kind: 'store', delivery });
}

/** A waiting delivery without attempts that schedules no drain. */
function newDelivery({ id }: RegisteredEndpoint, message: WebhookMessage): NewDelivery {
  return {
    endpointId: id,
    message,
    status: 'waiting',
    attempts: 0,
    nextInS: 0,
    lastStatus: undefined,
    lastReason: undefined,
    wakes: false,
    joined: [],
  };
}
