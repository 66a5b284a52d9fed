import { CLOSE_CODES } from '../contract/close-codes.ts';
import { ERROR_CODES } from '../contract/error-codes.ts';
import type { LIMITS } from '../limits.ts';
import type { Connection, Manner, Socket } from '../live/connection.ts';
import { errorFrame } from '../live/frames.ts';
import { parseFrame } from '../live/protocol.ts';
import type { Handshake, SocketEvents } from '../wire/server.ts';
import type { Refusal } from './admission.ts';
import type { Admitted, Credential, Member } from './member.ts';

/** What all doorways of a process share. */
export interface Door {
  readonly limits: Pick<
    typeof LIMITS,
    'authTimeoutMs' | 'frameInBytesMax' | 'keptFrameBytesMax' | 'framesInBurst'
  >;
  /** Counts the socket in. @returns why it must go at once */
  enter(address: string, origin: string): Refusal | undefined;
  /** Counts it out, whoever ended it. */
  leave(address: string, isKnown: boolean): void;
  authenticate(credential: Credential, address: string): Promise<Admitted>;
  /** @returns why an account's socket has no place */
  refusalOf(member: Member): Refusal | undefined;
  onFault(error: unknown): void;
  /** Makes the connection of a client that is known. */
  connect(socket: Socket, manner: Manner, member: Member): Connection;
}

/**
 * Stands between a socket and its connection until it is known whose it is: by header, ticket or
 * first frame. What the client sends meanwhile is kept, and handled in order.
 */
export class Doorway implements SocketEvents {
  readonly #socket: Socket;
  readonly #handshake: Handshake;
  readonly #door: Door;
  readonly #kept: { readonly bytes: Buffer; readonly isBinary: boolean }[] = [];
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #state: 'waiting' | 'asking' | 'open' | 'closed' = 'waiting';
  #connection: Connection | undefined;

  constructor(socket: Socket, handshake: Handshake, door: Door) {
    this.#socket = socket;
    this.#handshake = handshake;
    this.#door = door;
  }

  opened(): void {
    const { origin, key, ticket } = this.#handshake;
    const refusal = this.#door.enter(this.#socket.address, origin);
    if (refusal !== undefined) this.#refuse(refusal);
    else if (key !== '' && ticket !== undefined) {
      this.#refuse({ ...AUTH_MISSING, message: 'Send a key or a ticket, not both.' });
    } else if (key !== '') this.#ask({ kind: 'key', key });
    else if (ticket !== undefined) this.#ask({ kind: 'ticket', ticket });
    else {
      const waitMs = this.#door.limits.authTimeoutMs;
      this.#timer = setTimeout(() => this.#refuse(AUTH_MISSING), waitMs);
    }
  }

  receive(bytes: Buffer, isBinary: boolean): void {
    const { frameInBytesMax } = this.#door.limits;
    if (bytes.length > frameInBytesMax) this.#end(tooLarge(bytes.length, frameInBytesMax));
    else if (this.#connection !== undefined) this.#connection.receive(bytes, isBinary);
    else if (this.#state === 'asking') this.#keep(bytes, isBinary);
    else if (this.#state === 'waiting') this.#readAuth(bytes, isBinary);
  }

  pinged(): void {
    this.#connection?.pinged();
  }

  drained(): void {
    this.#connection?.drained();
  }

  closed(): void {
    clearTimeout(this.#timer);
    this.#state = 'closed';
    this.#kept.length = 0;
    this.#door.leave(this.#socket.address, this.#connection !== undefined);
    this.#connection?.closed();
  }

  #readAuth(bytes: Buffer, isBinary: boolean): void {
    const parsed = isBinary ? undefined : parseFrame(bytes);
    if (parsed?.ok !== true || parsed.frame.op !== 'auth') {
      this.#refuse(AUTH_MISSING);
      return;
    }
    this.#ask({ kind: 'key', key: parsed.frame.key });
  }

  #keep(bytes: Buffer, isBinary: boolean): void {
    this.#keptBytes += bytes.length;
    const { keptFrameBytesMax, framesInBurst } = this.#door.limits;
    if (this.#keptBytes <= keptFrameBytesMax && this.#kept.length < framesInBurst) {
      // The bytes are uWS's own after this call.
      this.#kept.push({ bytes: Buffer.from(bytes), isBinary });
      return;
    }
    const message = `More than ${keptFrameBytesMax} bytes or ${framesInBurst} frames before the credential was checked.`;
    this.#refuse({ code: 'protocol_error', message, more: {} });
  }

  #ask(credential: Credential): void {
    clearTimeout(this.#timer);
    this.#state = 'asking';
    this.#door
      .authenticate(credential, this.#socket.address)
      .then((admitted) => {
        if (this.#state === 'asking') this.#settle(admitted);
      })
      .catch((error) => {
        // A fault ends one connection, never the process.
        this.#door.onFault(error);
        this.#end(INTERNAL);
      });
  }

  #settle(admitted: Admitted): void {
    if (!admitted.ok) {
      this.#refuse(admitted.refusal);
      return;
    }
    const refusal = this.#door.refusalOf(admitted.member);
    if (refusal !== undefined) {
      this.#refuse(refusal);
      return;
    }
    this.#state = 'open';
    this.#connection = this.#door.connect(this.#socket, this.#handshake, admitted.member);
    this.#connection.opened();
    for (const { bytes, isBinary } of this.#kept.splice(0)) {
      this.#connection.receive(bytes, isBinary);
    }
  }

  /** Ends it, known or not. */
  #end(refusal: Refusal): void {
    if (this.#connection === undefined) this.#refuse(refusal);
    else this.#connection.fail(refusal.code, refusal.message);
  }

  #refuse({ code, message, more }: Refusal): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    clearTimeout(this.#timer);
    const { close } = ERROR_CODES[code];
    this.#socket.send(errorFrame(code, message, more));
    this.#socket.end(CLOSE_CODES[close].code, close);
  }
}

function tooLarge(bytes: number, max: number): Refusal {
  const message = `A frame of ${bytes} bytes; ${max} are allowed. Name fewer symbols in each.`;
  return { code: 'frame_too_large', message, more: {} };
}

const INTERNAL: Refusal = { code: 'internal', message: 'A fault of ours.', more: {} };
const AUTH_MISSING: Refusal = {
  code: 'auth_missing',
  message:
    'Say who you are: the X-API-Key header, ?ticket=, or {"op":"auth","key":"…"} as the first frame.',
  more: {},
};
