"""The frames of the server, and the codes that end a connection."""

from __future__ import annotations

from typing import Any

import msgspec

from ..errors import PilloleError
from ..models import Pill


class _Frame(msgspec.Struct, frozen=True, tag_field="type"):
    pass


class Welcome(_Frame, frozen=True, tag="welcome"):
    session: str
    tier: str
    epoch: str
    heartbeat_ms: float
    limits: dict[str, Any] = {}


class Rejected(msgspec.Struct, frozen=True):
    symbol: str
    code: str


class Subscribed(_Frame, frozen=True, tag="subscribed"):
    accepted: list[str]
    rejected: list[Rejected]
    position: str
    id: str | None = None
    never_seen: list[str] = []
    recovered: bool | None = None
    reason: str | None = None


class SnapshotFrame(_Frame, frozen=True, tag="snapshot"):
    pills: list[Pill]
    last: bool
    position: str
    id: str | None = None


class Live(_Frame, frozen=True, tag="live"):
    position: str
    id: str | None = None


class PillFrame(Pill, frozen=True, gc=False, tag_field="type", tag="pill"):
    pass


class Pills(_Frame, frozen=True, tag="pills"):
    pills: list[Pill]
    sent_at: str | None = None


class GapFrame(_Frame, frozen=True, tag="gap"):
    symbols: list[str]
    after: str | None
    until: str | None
    reason: str
    fill: str | None = None


class Generator(msgspec.Struct, frozen=True):
    state: str
    last_received_at: str | None = None


class Heartbeat(_Frame, frozen=True, tag="heartbeat"):
    time: str
    position: str
    generator: Generator


class Quiet(_Frame, frozen=True, tag="quiet"):
    symbol: str
    reason: str
    since: str | None = None
    until: str | None = None
    over: bool = False


class Status(_Frame, frozen=True, tag="status"):
    component: str
    state: str
    since: str | None = None
    message: str = ""


class Drain(_Frame, frozen=True, tag="drain"):
    reconnect_after_ms: float
    position: str
    reason: str = ""


class ErrorFrame(_Frame, frozen=True, tag="error"):
    code: str
    message: str
    fatal: bool
    id: str | None = None
    close: int | None = None
    retry_after_ms: float | None = None
    position: str | None = None


Frame = (
    Welcome
    | Subscribed
    | SnapshotFrame
    | Live
    | PillFrame
    | Pills
    | GapFrame
    | Heartbeat
    | Quiet
    | Status
    | Drain
    | ErrorFrame
)

_decoder: msgspec.json.Decoder[Frame] = msgspec.json.Decoder(Frame)


def decode_frame(data: bytes | str) -> Frame | None:
    """A frame; None if its type is unknown, which a later version of the server may send.

    Raises ValueError if the text is no frame at all.
    """
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError as error:
        value = msgspec.json.decode(data)
        known = isinstance(value, dict) and value.get("type") in _KNOWN
        if not isinstance(value, dict) or not isinstance(value.get("type"), str) or known:
            raise ValueError(str(error)) from error
        return None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


_KNOWN = frozenset(
    {"welcome", "subscribed", "snapshot", "live", "pill", "pills", "gap", "heartbeat", "quiet"}
    | {"status", "drain", "error"}
)

_CLOSE_NAMES = {
    4000: "drain",
    4001: "slow_consumer",
    4002: "peer_silent",
    4003: "log_unavailable",
    4004: "credential_expired",
    4005: "internal",
    4006: "too_fast",
    4500: "auth_missing",
    4501: "key_invalid",
    4502: "key_revoked",
    4503: "tier_too_low",
    4504: "taken_over",
    4505: "protocol_error",
    4506: "frame_too_large",
    4507: "origin_refused",
    4508: "connection_limit",
    4509: "address_refused",
    4510: "subscription_ended",
    4511: "dedicated_removed",
}


def may_reconnect(close_code: int) -> bool:
    """Codes from 4500 on end the stream; so do 1007 and 1009: a frame of ours was refused."""
    return not (close_code in (1007, 1009) or 4500 <= close_code <= 4999)


def frame_error(frame: ErrorFrame, position: str | None) -> PilloleError:
    """An ``error`` frame as an error; ``position`` is used if the frame has none."""
    if not frame.fatal:
        return PilloleError(frame.code, frame.message, position=position)
    retries = frame.retry_after_ms is not None or may_reconnect(frame.close or 1006)
    return PilloleError(
        frame.code,
        frame.message,
        retry="after" if retries else "never",
        retry_after_s=None if frame.retry_after_ms is None else frame.retry_after_ms / 1_000,
        position=frame.position or position,
        close_code=frame.close,
    )


def closed_error(close_code: int, reason: str, position: str | None) -> PilloleError:
    """A close without an ``error`` frame before it."""
    unnamed = "connection_lost" if close_code == 1006 else f"closed_{close_code}"
    return PilloleError(
        _CLOSE_NAMES.get(close_code, unnamed),
        f"The connection ended with {close_code}{f': {reason}' if reason else ''}.",
        retry="after" if may_reconnect(close_code) else "never",
        position=position,
        close_code=close_code,
    )


def refused_symbols(rejected: list[Rejected]) -> PilloleError:
    """The symbols that the server did not accept, with the code of the first."""
    refusals = ", ".join(f"{one.symbol!r} ({one.code})" for one in rejected)
    message = (
        f"The platform refused {refusals}. Correct or remove these symbols, or stream the others "
        'with refused_symbols="deliver".'
    )
    return PilloleError(rejected[0].code, message)
