import { randomBytes } from 'node:crypto';
import type { Offsets } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { CLOSE_CODES, type CloseName } from '../contract/close-codes.ts';
import { ERROR_CODES, type FatalName } from '../contract/error-codes.ts';
import type { Member } from '../door/member.ts';
import type { LIMITS } from '../limits.ts';
import type { Reached } from '../past/reached.ts';
import type { ResumeDesk } from '../past/resume.ts';
import type { Codec } from '../wire/codec.ts';
import { Outbox, type Wire } from '../wire/outbox.ts';
import {
  drainFrame,
  errorFrame,
  heartbeatFrame,
  type LogStatus,
  pongFrame,
  statusFrame,
  type ToldGenerator,
  unsubscribedFrame,
  welcomeFrame,
} from './frames.ts';
import { type HandOverPlace, handOver } from './hand-over.ts';
import { Inbox } from './inbox.ts';
import type { ClientFrame, SubscribeFrame } from './protocol.ts';
import { createSeat, type Seat } from './seat.ts';
import { NOWHERE, positionOf, toldLimits } from './told.ts';

/** A WebSocket, as much of it as a connection needs. */
export interface Socket extends Wire {
  readonly address: string;
  /** Sends a close frame and ends the socket. */
  end(code: number, reason: string): void;
}

/** What a client has chosen in its handshake. */
export interface Manner {
  /** Of the browser page; empty for programs. */
  readonly origin: string;
  readonly codec: Codec;
}

/** What all connections of a process share. */
export interface House extends Omit<HandOverPlace, 'limits'> {
  readonly resume: ResumeDesk;
  readonly limits: { readonly [L in keyof typeof LIMITS]: number };
  readonly nowMicros: () => Micros;
  readonly nowMs: () => number;
  readonly later: (action: () => void) => void;
  readonly generator: (now: Micros) => ToldGenerator;
  /** The log's state while it is away. */
  readonly logDown: () => LogStatus | undefined;
  /** A fault of ours, which ends one connection. */
  readonly onFault: (error: unknown) => void;
  readonly onClosed: (connection: Connection, reason: CloseName | 'peer') => void;
}

/** One client: reads its frames, answers them, and keeps its place in the hub. */
export class Connection {
  readonly session = `s_${randomBytes(6).toString('hex')}`;
  readonly openedAt: Micros;
  readonly outbox: Outbox;
  readonly address: string;
  /** Of the browser page; empty for programs. */
  readonly origin: string;
  readonly encoding: Codec['name'];
  readonly #socket: Socket;
  readonly #house: House;
  readonly #seat: Seat;
  readonly #inbox: Inbox;
  /** What a resume that is being prepared goes on from; nothing beyond it was handed over yet. */
  #pendingAfter: Offsets | undefined;
  /** Whose it is; renewed when the account's access changes. */
  member: Member;
  #dead = false;

  constructor(socket: Socket, { origin, codec }: Manner, member: Member, house: House) {
    const { limits, nowMs, nowMicros } = house;
    this.#socket = socket;
    this.#house = house;
    this.member = member;
    this.address = socket.address;
    this.origin = origin;
    this.encoding = codec.name;
    this.openedAt = nowMicros();
    this.outbox = new Outbox({
      wire: socket,
      limits,
      nowMs,
      nowMicros,
      later: (action) =>
        house.later(() => {
          action();
          this.#checkBounds(); // nobody else looks at what a later turn did
        }),
    });
    this.#seat = createSeat(this.outbox, codec, () => this.#checkBounds());
    this.#inbox = new Inbox(limits, nowMs, {
      answer: (frame) => this.#answer(frame),
      answerFault: ({ id, code, message }) => this.tell(errorFrame(code, message, { id })),
      end: (code, message) => this.fail(code, message, this.resumable()),
    });
  }

  /** Greets. */
  opened(): void {
    const { board, nowMicros, limits, logDown } = this.#house;
    const now = nowMicros();
    this.tell(
      welcomeFrame({
        session: this.session,
        epoch: board.epoch,
        now,
        heartbeatMs: limits.heartbeatMs,
        member: this.member,
        limits: toldLimits(this.member, limits),
      }),
    );
    const down = logDown();
    if (down !== undefined) this.tell(statusFrame(now, down));
  }

  /** Sends a frame after all that waits. */
  tell(frame: Buffer): void {
    this.outbox.push(frame);
    this.#checkBounds();
  }

  /** Takes a frame of the client. The bytes may be reused after the call. */
  receive(bytes: Buffer, isBinary: boolean): void {
    if (!this.#dead) this.#inbox.receive(bytes, isBinary);
  }

  #answer(frame: ClientFrame): void {
    if (this.#dead) return;
    if (frame.op === 'subscribe') this.#subscribe(frame);
    else if (frame.op === 'unsubscribe') this.#unsubscribe(frame.id, frame.symbols);
    else if (frame.op === 'ping') {
      this.tell(pongFrame(frame.id, frame.t, this.#house.nowMicros()));
    } else {
      const message = 'The connection is authenticated already; go on without.';
      this.tell(errorFrame('auth_not_needed', message, { id: frame.id }));
    }
  }

  /** A ping of the WebSocket layer; uWS has answered it. It counts as a frame. */
  pinged(): void {
    if (!this.#dead) this.#inbox.isPaced();
  }

  /** The socket has room again. */
  drained(): void {
    if (this.#dead) return;
    this.outbox.drained();
    this.#checkBounds();
  }

  /**
   * Sends a heartbeat, unless the one before still waits. All published pills must be in the
   * outboxes (`hub.flush`), so that the position it tells is true.
   */
  beat(): void {
    if (this.#dead) return;
    const { generator, nowMicros, nowMs, limits } = this.#house;
    this.outbox.drained(); // should a drain event have been missed
    const queueMs = this.outbox.queueMs(nowMs());
    if (queueMs >= limits.heartbeatMs) return;
    const now = nowMicros();
    this.tell(
      heartbeatFrame({
        now,
        position: this.#position(false),
        sent: this.outbox.pillsSent,
        filtered: this.#seat.filtered,
        skipped: this.outbox.pillsSkipped,
        queueBytes: this.queueBytes,
        queueMs,
        generator: generator(now),
      }),
    );
  }

  /**
   * Tells the client that this process stops: when the close comes at the latest, how long to wait
   * before it connects again, both in ms, and the position that it has reached by then.
   */
  drain(jitterMs: number, graceMs: number): void {
    this.#house.hub.flush(); // so that the position told misses nothing that was published
    if (this.#dead) return;
    this.tell(drainFrame(jitterMs, graceMs, this.#position(false)));
  }

  /** Bytes that wait, in our queue and inside uWS. */
  get queueBytes(): number {
    return this.#dead ? 0 : this.outbox.queueBytes + this.#socket.buffered();
  }

  /** Ends the connection with an error that says why. */
  fail(code: FatalName, message: string, more: Readonly<Record<string, unknown>> = {}): void {
    if (this.#dead) return;
    this.outbox.finish(errorFrame(code, message, more));
    this.close(ERROR_CODES[code].close);
  }

  /** Ends the connection with a close code; what waits in the queue is dropped. */
  close(reason: CloseName): void {
    if (this.#dead) return;
    this.#bury(reason);
    this.#socket.end(CLOSE_CODES[reason].code, reason);
  }

  /** The socket is gone, whoever ended it. */
  closed(): void {
    if (!this.#dead) this.#bury('peer');
  }

  #bury(reason: CloseName | 'peer'): void {
    this.#dead = true;
    this.#house.hub.leave(this.#seat);
    this.outbox.close();
    this.#house.onClosed(this, reason);
  }

  #subscribe(frame: SubscribeFrame): void {
    const reached = this.#house.resume.reach(frame.resume, {
      accountId: this.member.accountId,
      ...{ symbols: frame.symbols, named: this.#seat.named, subscription: frame },
    });
    if (!(reached instanceof Promise)) {
      this.#handOver(frame, reached);
      return;
    }
    this.#pendingAfter =
      frame.resume?.kind === 'position' ? frame.resume.position.offsets : NOWHERE;
    this.#inbox.hold();
    reached
      .then((past) => {
        this.#pendingAfter = undefined;
        if (this.#dead) return;
        this.#handOver(frame, past);
        this.#inbox.release();
      })
      .catch((error) => {
        this.#house.onFault(error);
        this.fail('internal', 'A fault of ours.', this.resumable());
      });
  }

  #handOver(frame: SubscribeFrame, reached: Reached): void {
    this.#house.hub.flush();
    if (this.#dead) return;
    this.outbox.settle();
    handOver(this.#house, this.#seat, frame, reached, this.member);
    this.#checkBounds();
  }

  #unsubscribe(id: string | undefined, symbols: readonly string[]): void {
    const { hub } = this.#house;
    hub.flush();
    if (this.#dead) return;
    this.outbox.settle();
    const ended = symbols.filter((symbol) => hub.unsubscribe(this.#seat, symbol));
    const remaining = this.#seat.named.size + (this.#seat.star === undefined ? 0 : 1);
    this.tell(unsubscribedFrame(id, ended, remaining));
  }

  /** Ends the connection when its queue is over the bound, or its socket dropped a frame. */
  #checkBounds(): void {
    if (this.#dead) return;
    if (this.outbox.broken) this.close('slow_consumer');
    if (this.#dead || !this.outbox.overflowed) return;
    const mib = this.#house.limits.queueBytesMax / 1_048_576;
    this.#house.hub.flush(); // so that the position told misses nothing that was published
    this.fail('slow_consumer', `${mib} MiB waited unread.`, {
      retry_after_ms: 500,
      ...this.resumable(),
    });
  }

  /** The position to go on from; null while a snapshot was on its way: then begin anew. */
  resumable(): { position: string | null } {
    this.#house.hub.flush();
    return { position: this.outbox.holdsSource ? null : this.#position(true) };
  }

  /** @param queuedIsLost the queue is dropped: only what was given to the socket counts */
  #position(queuedIsLost: boolean): string {
    return positionOf(this.#house.board, this.outbox, this.#pendingAfter, queuedIsLost);
  }
}
