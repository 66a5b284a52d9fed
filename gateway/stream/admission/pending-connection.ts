import { networkOf } from '../../../domain/access/network-of.ts';
import { countSecurityEvent } from '../../../domain/access/security-events.ts';
import { type Connection, INTERNAL_ERROR } from '../hub/stream-connection.ts';
import { CLOSE_CODES, isSecurityClose } from '../protocol/close-codes.ts';
import { ERROR_CODES } from '../protocol/error-codes.ts';
import { parseClientFrame } from '../protocol/parse-frame.ts';
import { errorFrame } from '../protocol/server-frames.ts';
import type { Handshake, Socket, SocketEvents } from '../wire/websocket-server.ts';
import { type Admission, GAVE_WAY } from './admission.ts';
import { type Authentication, type Credential, refusalOf } from './authenticate.ts';
import type { Refusal } from './connection-limiter.ts';
import type { Waiting } from './waiting-room.ts';

/**
 * A socket until it is authenticated by header, ticket or first frame; then it passes all events on
 * to its connection. Frames that arrive during authentication are queued and handled in order.
 */
export class PendingConnection implements SocketEvents, Waiting {
  readonly network: string;
  readonly #socket: Socket;
  readonly #handshake: Handshake;
  readonly #admission: Admission;
  readonly #queued: { readonly bytes: Buffer; readonly isBinary: boolean }[] = [];
  #queuedBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #state: 'waiting' | 'authenticating' | 'open' | 'closed' = 'waiting';
  #connection: Connection | undefined;

  constructor(socket: Socket, handshake: Handshake, admission: Admission) {
    this.network = networkOf(socket.address);
    this.#socket = socket;
    this.#handshake = handshake;
    this.#admission = admission;
  }

  opened(): void {
    const { key, ticket, proof } = this.#handshake;
    const refusal = this.#admission.enter(this, this.#handshake);
    if (refusal !== undefined) this.#refuse(refusal);
    else if (this.#handshake.isElsewhere) this.#refuse(NOT_HERE);
    else if ((key !== '' || proof !== undefined) && ticket !== undefined) {
      this.#refuse({ ...AUTH_MISSING, message: 'Send a key or a ticket, not both.' });
    } else if (proof !== undefined) this.#authenticate({ kind: 'proof', proof });
    else if (key !== '') this.#authenticate({ kind: 'key', key });
    else if (ticket !== undefined) this.#authenticate({ kind: 'ticket', ticket });
    else {
      const waitMs = this.#admission.limits.authTimeoutMs;
      this.#timer = setTimeout(() => this.#refuse(AUTH_MISSING), waitMs);
    }
  }

  receive(bytes: Buffer, isBinary: boolean): void {
    const { frameInBytesMax } = this.#admission.limits;
    if (bytes.length > frameInBytesMax) {
      const message = `The frame has ${bytes.length} bytes; at most ${frameInBytesMax} are allowed. Name fewer symbols per frame.`;
      this.#end(refusalOf('frame_too_large', message));
    } else if (this.#connection !== undefined) this.#connection.receive(bytes, isBinary);
    else if (this.#state === 'authenticating') this.#enqueue(bytes, isBinary);
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
    this.#queued.length = 0;
    this.#admission.leave(this);
    this.#connection?.closed();
  }

  giveWay(): void {
    this.#refuse(GAVE_WAY);
  }

  #readAuth(bytes: Buffer, isBinary: boolean): void {
    const parsed = isBinary ? undefined : parseClientFrame(bytes);
    if (parsed?.ok !== true || parsed.frame.op !== 'auth') {
      this.#refuse(AUTH_MISSING);
      return;
    }
    const refusal = this.#admission.enterCheck(this);
    if (refusal !== undefined) this.#refuse(refusal);
    else this.#authenticate({ kind: 'key', key: parsed.frame.key });
  }

  #enqueue(bytes: Buffer, isBinary: boolean): void {
    this.#queuedBytes += bytes.length;
    const { pendingFrameBytesMax, framesInBurst } = this.#admission.limits;
    if (this.#queuedBytes <= pendingFrameBytesMax && this.#queued.length < framesInBurst) {
      // Copied, because the bytes belong to uWS after this call.
      this.#queued.push({ bytes: Buffer.from(bytes), isBinary });
      return;
    }
    const message = `More than ${pendingFrameBytesMax} bytes or ${framesInBurst} frames before the credential was checked; wait for "welcome".`;
    this.#refuse(refusalOf('protocol_error', message));
  }

  #authenticate(credential: Credential): void {
    clearTimeout(this.#timer);
    this.#state = 'authenticating';
    this.#admission
      .authenticate(credential, this.#socket.address)
      .then((result) => {
        if (this.#state === 'authenticating') this.#settle(result);
      })
      .catch((error) => {
        // An internal error ends one connection, never the process.
        this.#admission.onFault(error);
        this.#end(INTERNAL);
      });
  }

  #settle(result: Authentication): void {
    if (!result.ok) {
      this.#refuse(result.refusal);
      return;
    }
    const refusal = this.#admission.refusalOf(result.principal);
    if (refusal !== undefined) {
      this.#refuse(refusal);
      return;
    }
    this.#state = 'open';
    this.#connection = this.#admission.connect(
      this,
      this.#socket,
      this.#handshake.codec,
      result.principal,
    );
    this.#connection.opened();
    for (const { bytes, isBinary } of this.#queued.splice(0)) {
      this.#connection.receive(bytes, isBinary);
    }
  }

  /** Ends the socket, authenticated or not. */
  #end(refusal: Refusal): void {
    if (this.#connection === undefined) this.#refuse(refusal);
    else this.#connection.fail(refusal.code, refusal.message);
  }

  #refuse({ code, message, more }: Refusal): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    clearTimeout(this.#timer);
    const { close } = ERROR_CODES[code];
    if (isSecurityClose(close)) countSecurityEvent(`socket_${close}`, this.#socket.address);
    this.#socket.send(errorFrame(code, message, more));
    this.#socket.end(CLOSE_CODES[close].code, close);
  }
}

const INTERNAL = refusalOf('internal', INTERNAL_ERROR);
const AUTH_MISSING = refusalOf(
  'auth_missing',
  'Authenticate with the X-API-Key header, with ?ticket=, or with {"op":"auth","key":"…"} as the first frame.',
);
const NOT_HERE = refusalOf(
  'dedicated_unknown',
  'No dedicated socket of this name is served at this address. GET /api/account lists the addresses ' +
    'of yours, and of the shared stream.',
);
