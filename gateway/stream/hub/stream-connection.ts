import { randomBytes } from 'node:crypto';
import type { Offsets } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { API_VERSION } from '../../http/problems.ts';
import { CLOSE_CODES, type CloseName } from '../protocol/close-codes.ts';
import { ERROR_CODES, type FatalName } from '../protocol/error-codes.ts';
import type { ClientFrame, SubscribeFrame } from '../protocol/parse-frame.ts';
import type { ServerFrame } from '../protocol/server-frame-schemas.ts';
import { encodeFrame, errorFrame, type LogStatus, statusFrame } from '../protocol/server-frames.ts';
import { ALL_SYMBOLS } from '../protocol/subscription.ts';
import type { ResumeOutcome } from '../replay/replay-plan.ts';
import type { Resumer } from '../replay/resume.ts';
import type { Codec } from '../wire/codec.ts';
import { Outbox } from '../wire/outbox.ts';
import type { Socket } from '../wire/websocket-server.ts';
import { NO_OFFSETS, positionOf } from './connection-position.ts';
import { Inbox } from './inbox.ts';
import { maySee, type Principal } from './principal.ts';
import { type SubscriptionDeps, startSubscription } from './start-subscription.ts';
import { createSubscriber, type Subscriber } from './subscriber.ts';

/** Everything that the connections of a process share. */
export interface ConnectionDeps extends SubscriptionDeps {
  readonly resumer: Resumer;
  readonly nowMs: () => number;
  /** Runs an action in a later turn of the event loop. */
  readonly later: (action: () => void) => void;
  /** The generator in a heartbeat; `unknown` while the log is unreachable. */
  readonly generator: (now: Micros) => ServerFrame<'heartbeat'>['generator'];
  /** The state of the log while it is unreachable. */
  readonly logDown: () => LogStatus | undefined;
  /** Reports an internal error, which ends one connection. */
  readonly onFault: (error: unknown) => void;
  readonly onClosed: (connection: Connection, reason: CloseName | 'peer') => void;
}

export const INTERNAL_ERROR = 'Internal server error. Connect again and resume.';

/** One client: reads and answers its frames, and owns its subscriber in the hub. */
export class Connection {
  readonly session = `s_${randomBytes(6).toString('hex')}`;
  readonly openedAt: Micros;
  readonly outbox: Outbox;
  readonly address: string;
  readonly encoding: Codec['name'];
  readonly #socket: Socket;
  readonly #deps: ConnectionDeps;
  readonly #subscriber: Subscriber;
  readonly #inbox: Inbox;
  /** Start of a resume in preparation; no pill after it has been sent yet. */
  #pendingAfter: Offsets | undefined;
  /** Replaced when the access of the account changes. */
  principal: Principal;
  #dead = false;

  constructor(socket: Socket, codec: Codec, principal: Principal, deps: ConnectionDeps) {
    const { limits, nowMs, nowMicros } = deps;
    this.#socket = socket;
    this.#deps = deps;
    this.principal = principal;
    this.address = socket.address;
    this.encoding = codec.name;
    this.openedAt = nowMicros();
    this.outbox = new Outbox({
      wire: socket,
      limits,
      nowMs,
      nowMicros,
      later: (action) =>
        deps.later(() => {
          action();
          this.#checkBounds(); // no other caller checks the result of a later turn
        }),
    });
    this.#subscriber = createSubscriber(this.outbox, codec, () => this.#checkBounds());
    this.#inbox = new Inbox(limits, nowMs, {
      answer: (frame) => this.#answer(frame),
      answerFault: ({ id, code, message }) => this.send(errorFrame(code, message, { id })),
      end: (code, message) => this.fail(code, message, this.resumePosition()),
    });
  }

  /** Sends `welcome`, and `status` while the log is unreachable. */
  opened(): void {
    const { latestPills, nowMicros, limits, logDown } = this.#deps;
    const { accountId, tier, connectionsMax, symbolsMax, desk } = this.principal;
    const now = nowMicros();
    this.send(
      encodeFrame({
        type: 'welcome',
        version: API_VERSION,
        session: this.session,
        account: accountId,
        tier,
        epoch: latestPills.epoch,
        time: formatTimestamp(now),
        heartbeat_ms: limits.heartbeatMs,
        limits: {
          connections: Math.min(connectionsMax, desk?.connectionsMax ?? connectionsMax),
          symbols: Math.min(symbolsMax, limits.symbolsPerConnectionMax),
          frames_in_per_s: limits.framesInPerSecond,
          frame_in_bytes: limits.frameInBytesMax,
          queue_bytes: limits.queueBytesMax,
          resume_max_age_s: limits.resumeMaxAgeS,
        },
      }),
    );
    const down = logDown();
    if (down !== undefined) this.send(statusFrame(now, down));
  }

  /** Sends a frame after all queued frames. */
  send(frame: Buffer): void {
    this.outbox.push(frame);
    this.#checkBounds();
  }

  /** Takes a frame of the client. The bytes may be reused after the call. */
  receive(bytes: Buffer, isBinary: boolean): void {
    if (!this.#dead) this.#inbox.receive(bytes, isBinary);
  }

  #answer(frame: ClientFrame): void {
    if (this.#dead) return;
    const { nowMicros } = this.#deps;
    if (frame.op === 'subscribe') this.#subscribe(frame);
    else if (frame.op === 'unsubscribe') this.#unsubscribe(frame.id, frame.symbols);
    else if (frame.op === 'ping') {
      const { id, t } = frame;
      this.send(encodeFrame({ type: 'pong', id, t, time: formatTimestamp(nowMicros()) }));
    } else {
      const message = 'The connection is already authenticated; do not send "auth" again.';
      this.send(errorFrame('auth_not_needed', message, { id: frame.id }));
    }
  }

  /** Handles a WebSocket ping, which uWS has answered. It counts as a frame. */
  pinged(): void {
    if (!this.#dead) this.#inbox.countFrame();
  }

  /** The socket has room again. */
  drained(): void {
    if (this.#dead) return;
    this.outbox.drained();
    this.#checkBounds();
  }

  /**
   * Sends a heartbeat, unless the previous one is still queued. All published pills must be in the
   * outboxes (`hub.flush`), so that the position in it is correct.
   */
  sendHeartbeat(): void {
    if (this.#dead) return;
    const { generator, nowMicros, nowMs, limits } = this.#deps;
    this.outbox.drained(); // in case a drain event was missed
    const queueMs = this.outbox.queueMs(nowMs());
    if (queueMs >= limits.heartbeatMs) return;
    const now = nowMicros();
    this.send(
      encodeFrame({
        type: 'heartbeat',
        time: formatTimestamp(now),
        position: this.#position(false),
        sent: this.outbox.pillsSent,
        filtered: this.#subscriber.filtered,
        skipped: this.outbox.pillsSkipped,
        queue_bytes: this.queueBytes,
        queue_ms: queueMs,
        generator: generator(now),
      }),
    );
  }

  /**
   * Announces that the process is stopping and closes the connection within `graceMs`; the client
   * should wait `jitterMs` before it connects again, and resume from the position in the frame.
   */
  drain(jitterMs: number, graceMs: number): void {
    this.#deps.hub.flush(); // so that the position includes all published pills
    if (this.#dead) return;
    this.send(
      encodeFrame({
        type: 'drain',
        reason: 'shutdown',
        grace_ms: graceMs,
        reconnect_after_ms: jitterMs,
        position: this.#position(false),
      }),
    );
  }

  /** Unsent bytes, in our queue and inside uWS. */
  get queueBytes(): number {
    return this.#dead ? 0 : this.outbox.queueBytes + this.#socket.buffered();
  }

  /**
   * Replaces the rights of the connection. One that already gets a symbol which its desk may no longer
   * read ends, and may connect again for others.
   */
  reauthorize(principal: Principal): void {
    this.principal = principal;
    const { named, wildcard } = this.#subscriber;
    const held = [...named.keys(), ...(wildcard ? [ALL_SYMBOLS] : [])];
    const lost = held.find((symbol) => !maySee(principal, symbol));
    if (lost === undefined) return;
    const message = `The desk of the key may no longer read ${lost}.`;
    this.fail('symbols_changed', message, this.resumePosition());
  }

  /** Ends the connection with an error that says why. */
  fail(code: FatalName, message: string, more: Readonly<Record<string, unknown>> = {}): void {
    if (this.#dead) return;
    this.outbox.finish(errorFrame(code, message, more));
    this.close(ERROR_CODES[code].close);
  }

  /** Ends the connection with a close code; queued frames are dropped. */
  close(reason: CloseName): void {
    if (this.#dead) return;
    this.#release(reason);
    this.#socket.end(CLOSE_CODES[reason].code, reason);
  }

  /** The socket is gone, whichever side ended it. */
  closed(): void {
    if (!this.#dead) this.#release('peer');
  }

  #release(reason: CloseName | 'peer'): void {
    this.#dead = true;
    this.#deps.hub.remove(this.#subscriber);
    this.outbox.close();
    this.#deps.onClosed(this, reason);
  }

  #subscribe(frame: SubscribeFrame): void {
    const outcome = this.#deps.resumer.resume(frame.resume, {
      accountId: this.principal.accountId,
      symbols: frame.symbols.filter((symbol) => maySee(this.principal, symbol)),
      named: this.#subscriber.named,
      subscription: frame,
    });
    if (!(outcome instanceof Promise)) {
      this.#start(frame, outcome);
      return;
    }
    this.#pendingAfter =
      frame.resume?.kind === 'position' ? frame.resume.position.offsets : NO_OFFSETS;
    this.#inbox.hold();
    outcome
      .then((prepared) => {
        this.#pendingAfter = undefined;
        if (this.#dead) return;
        this.#start(frame, prepared);
        this.#inbox.release();
      })
      .catch((error) => {
        this.#deps.onFault(error);
        this.fail('internal', INTERNAL_ERROR, this.resumePosition());
      });
  }

  #start(frame: SubscribeFrame, outcome: ResumeOutcome): void {
    this.#deps.hub.flush();
    if (this.#dead) return;
    this.outbox.settle();
    startSubscription(this.#deps, this.#subscriber, frame, outcome, this.principal);
    this.#checkBounds();
  }

  #unsubscribe(id: string | undefined, symbols: readonly string[]): void {
    const { hub } = this.#deps;
    hub.flush();
    if (this.#dead) return;
    this.outbox.settle();
    const ended = symbols.filter((symbol) => hub.unsubscribe(this.#subscriber, symbol));
    const remaining = this.#subscriber.named.size + (this.#subscriber.wildcard ? 1 : 0);
    this.send(encodeFrame({ type: 'unsubscribed', id, symbols: ended, remaining }));
  }

  /** Ends the connection if its queue is over the bound, or its socket dropped a frame. */
  #checkBounds(): void {
    if (this.#dead) return;
    if (this.outbox.broken) this.close('slow_consumer');
    if (this.#dead || !this.outbox.overflowed) return;
    const mib = this.#deps.limits.queueBytesMax / 1_048_576;
    const message = `More than ${mib} MiB was queued unread. Read faster, or subscribe to fewer symbols.`;
    this.#deps.hub.flush(); // so that the position includes all published pills
    this.fail('slow_consumer', message, { retry_after_ms: 500, ...this.resumePosition() });
  }

  /** The position to resume from; null while a snapshot is queued: subscribe without `resume`. */
  resumePosition(): { position: string | null } {
    this.#deps.hub.flush();
    return { position: this.outbox.holdsSource ? null : this.#position(true) };
  }

  /** @param queuedIsLost the queue will be dropped: only frames given to the socket count */
  #position(queuedIsLost: boolean): string {
    const { latestPills } = this.#deps;
    return positionOf(latestPills, this.outbox, this.#pendingAfter, queuedIsLost);
  }
}
