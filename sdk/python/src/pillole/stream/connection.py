"""Keeps a stream connected."""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from ..auth import Credentials
from ..errors import PilloleError
from ..rest import retry_after_s
from ..retry import jitter_s
from .frames import Welcome, closed_error, decode_frame, may_reconnect
from .runtime import StreamRuntime
from .session import Session

WELCOME_MAX_S = 10.0
"""From the attempt to connect until ``welcome``."""
HEARTBEATS_MISSED = 2
"""Missing heartbeats after which a connection counts as dead, whatever data came before."""
BUSY_GRACE_S = 0.1
"""Frames that wait behind a busy event loop are read first."""
RETRY_AFTER_MAX_S = 60.0
"""The longest wait that a refused handshake may ask for."""
STABLE_S = 5.0
"""A connection that lasts this long resets the back-off."""
RECONNECT_FIRST_S = 0.5
FRAME_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True)
class Address:
    """Where and how to connect."""

    url: str
    credentials: Credentials
    ssl_context: ssl.SSLContext | None


@dataclass(frozen=True)
class _Ending:
    error: PilloleError
    retries: bool
    server_delay_s: float | None = None
    delay_is_exact: bool = False
    lasted: bool = False
    opened: bool = False


class _NoRedirect(connect):
    """A redirect must not carry the credential to another address."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def keep_connected(
    runtime: StreamRuntime,
    address: Address,
    reconnect_max_s: float,
    attempts_max: int | None,
) -> PilloleError:
    """Connects again after every end until the stream is refused; returns why it ended.

    ``attempts_max`` bounds consecutive attempts that opened nothing; None: no bound.
    """
    attempt = unopened = 0
    has_opened = False
    while True:
        runtime.state = "connecting"
        ending = await _connect_once(runtime, address)
        has_opened = has_opened or ending.opened
        elsewhere = ending.error.code == "not_pillole" and not has_opened
        if not ending.retries or elsewhere:
            return ending.error
        if ending.lasted:
            attempt = 0
        unopened = 0 if ending.opened else unopened + 1
        if attempts_max is not None and unopened >= attempts_max:
            return _exhausted(unopened, ending.error)
        delay_s = ending.server_delay_s or 0.0
        if not ending.delay_is_exact:
            delay_s += jitter_s(attempt, min(RECONNECT_FIRST_S, reconnect_max_s), reconnect_max_s)
        attempt += 1
        runtime.state = "waiting"
        runtime.note(ending.error)
        await asyncio.sleep(delay_s)


async def _connect_once(runtime: StreamRuntime, address: Address) -> _Ending:
    """One connection, from the attempt to its end."""
    options: dict[str, Any] = {} if address.ssl_context is None else {"ssl": address.ssl_context}
    credentials = address.credentials
    if credentials.auth is not None:
        try:
            headers = await credentials.headers_async("GET", address.url)
        except PilloleError as error:
            return _Ending(error, error.retry != "never")
        options["additional_headers"] = headers
    try:
        socket = await _NoRedirect(
            address.url,
            open_timeout=WELCOME_MAX_S,
            close_timeout=1,
            # The server's heartbeats are the sign of life, and they carry the position.
            ping_interval=None,
            # Frames are small and must be quick.
            compression=None,
            max_size=FRAME_BYTES_MAX,
            max_queue=256,
            **options,
        )
    except InvalidStatus as error:
        after = error.response.headers.get("retry-after")
        return _refused_handshake(error.response.status_code, after, address.url)
    except (InvalidURI, ValueError) as error:
        return _Ending(PilloleError("not_configured", f"stream_url: {error}"), False)
    except (OSError, TimeoutError, InvalidHandshake, EOFError) as error:
        reason = str(error) or type(error).__name__
        message = f"{address.url} cannot be reached: {reason}"
        return _Ending(PilloleError("connection_lost", message, retry="after"), True)
    session = Session(runtime, lambda frame: _send(socket, frame))
    code, reason = await _read_all(runtime, session, socket, credentials.key)
    if session.end is not None:
        return _Ending(session.end, False)
    lasted_s = 0.0 if session.live_since is None else time.monotonic() - session.live_since
    return _Ending(
        session.fatal or closed_error(code, reason, runtime.received.text),
        may_reconnect(code),
        session.server_delay_s,
        session.delay_is_exact,
        lasted_s >= STABLE_S,
        session.live_since is not None,
    )


async def _read_all(
    runtime: StreamRuntime, session: Session, socket: ClientConnection, key: str | None
) -> tuple[int, str]:
    """Reads frames until the socket ends; returns the close code and the reason. ``key``: None if
    the handshake has proved the client."""
    watch = _SilenceWatch(socket)
    try:
        if key is not None:
            await _send(socket, {"op": "auth", "key": key, "id": "auth"})
        while session.end is None:
            data = await socket.recv(decode=False)
            watch.frame_came()
            try:
                frame = decode_frame(data)
            except ValueError as error:
                return 1006, f"a frame that cannot be read: {error}"
            if isinstance(frame, Welcome):
                watch.expect_every(frame.heartbeat_ms / 1_000)
            if frame is not None:
                # A gap before the frame may be filled for longer than two heartbeats.
                watch.is_reading = True
                await session.read(frame)
                watch.is_reading = False
            if not runtime.queue.has_room():
                # Nothing is read meanwhile, which holds the server back.
                watch.pause()
                await runtime.queue.wait_for_room()
                watch.resume()
        return 1000, ""
    except ConnectionClosed as error:
        if watch.silent_s is not None:
            return 1006, f"no frame in {watch.silent_s:.1f} s"
        return (1006, "") if error.rcvd is None else (error.rcvd.code, error.rcvd.reason)
    finally:
        watch.stop()
        try:
            await socket.close()
        except Exception:  # the handshake of an ended connection
            socket.transport.abort()
        except asyncio.CancelledError:
            socket.transport.abort()
            raise


async def _send(socket: ClientConnection, frame: dict[str, Any]) -> None:
    await socket.send(msgspec.json.encode(frame).decode())


class _SilenceWatch:
    """Cuts a socket on which no frame came for the maximum. Pauses do not count."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._max_s = WELCOME_MAX_S
        self._timer: asyncio.TimerHandle | None = None
        self.silent_s: float | None = None
        self.is_reading = False
        self._watch(self._max_s, False)

    def _watch(self, delay_s: float, is_certain: bool) -> None:
        self.stop()
        self._timer = self._loop.call_later(delay_s, self._look, is_certain)

    def _look(self, is_certain: bool) -> None:
        if self.is_reading:
            self._last = self._loop.time()
        silent_s = self._loop.time() - self._last
        if silent_s < self._max_s:
            self._watch(self._max_s - silent_s, False)
        elif not is_certain:
            self._watch(BUSY_GRACE_S, True)
        else:
            self.silent_s = silent_s
            self._socket.transport.abort()

    def frame_came(self) -> None:
        self._last = self._loop.time()

    def expect_every(self, heartbeat_s: float) -> None:
        self._max_s = heartbeat_s * HEARTBEATS_MISSED
        self._watch(self._max_s, False)

    def pause(self) -> None:
        self.stop()

    def resume(self) -> None:
        self._last = self._loop.time()
        self._watch(self._max_s, False)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _refused_handshake(status: int, after: str | None, url: str) -> _Ending:
    if 400 <= status < 500 and status not in (408, 429):
        message = (
            f"No stream of pillole is at {url}: it answers HTTP {status}. Check the address and "
            "its port; the stream has port 8082 by default."
        )
        return _Ending(PilloleError("not_pillole", message, status=status, retry="after"), True)
    message = f"{url} answers HTTP {status}."
    # A proxy may ask for hours; the stream asks again after a minute.
    delay_s = retry_after_s(after, None)
    delay_s = None if delay_s is None else min(delay_s, RETRY_AFTER_MAX_S)
    error = PilloleError(
        "connection_lost", message, status=status, retry="after", retry_after_s=delay_s
    )
    return _Ending(error, True, delay_s)


def _exhausted(attempts: int, cause: PilloleError) -> PilloleError:
    message = (
        f"The stream could not be opened in {attempts} attempts. Check the address, and that the "
        f"stream was not removed. Last error: {cause.message}"
    )
    error = PilloleError("retries_exhausted", message, retry="after", position=cause.position)
    error.__cause__ = cause
    return error
