"""What the platform sends. Times are ISO 8601 texts in UTC with six decimals."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class Pill(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A pill, the same on every channel."""

    cursor: str
    """Position in the log: ``<partition>-<offset>``."""
    id: str
    """Chosen by the sender; symbol and id identify the pill."""
    timestamp: str
    """When the signal was made, by the sender's clock."""
    symbol: str
    gross_spread_percent: float
    market_state: str
    confidence: float
    """0 to 100, as the sender gave it."""
    received_at: str
    """When the platform received the pill."""
    prev: str | None = None
    """Cursor of the symbol's previous pill; None where it is unknown."""
    sent_at: str | None = None
    """When the stream sent the pill; None in REST answers, snapshots and filled gaps."""
    late: bool = False
    """Older in order time than an earlier pill of its symbol."""
    backfill: bool = False
    """Received later after its timestamp than the backfill age: not for trading."""
    replayed: bool = False
    """Published before, and delivered now to close a gap or to resume."""
    skipped: int = 0
    """In mode ``latest``: pills of the symbol that were left out before this one."""
    last_cursor: str | None = None
    """In snapshots: cursor of the symbol's last pill in the log."""

    epoch: str | None = None
    """Epoch of the cursor, in history: only of pills of another log than the current one."""

    @property
    def time(self) -> datetime:
        """``timestamp`` as an aware datetime."""
        return parse_time(self.timestamp)


class Latest(msgspec.Struct, frozen=True):
    """The newest pill of a symbol, or of all."""

    data: Pill
    position: str


class SymbolFault(msgspec.Struct, frozen=True):
    """Why a symbol of a request has no pill."""

    code: str
    detail: str = ""


class LatestMany(msgspec.Struct, frozen=True):
    """Each requested symbol is in ``data`` or in ``errors``."""

    data: dict[str, Pill]
    errors: dict[str, SymbolFault]
    position: str


class UnknownSymbol(msgspec.Struct, frozen=True):
    """A symbol without a pill, and the known symbol that was probably meant."""

    symbol: str
    meant: str | None = None


class HistoryPage(msgspec.Struct, frozen=True):
    """One page of history."""

    data: list[Pill]
    next: str | None = None
    position: str | None = None
    as_of: dict[str, Any] | None = None
    receipt: dict[str, Any] | None = None
    """Covers this page and all earlier ones of the range; see `verify_receipt`."""
    unknown_symbols: list[UnknownSymbol] = []


class Usable(msgspec.Struct, frozen=True):
    """Whether a symbol may be acted on now; no when in doubt."""

    usable: bool
    reason: str
    """``verified``; else the first reason of the verdict, or the code of an error."""
    valid_for_s: float
    verdict: dict[str, Any] | None = None


class Snapshot(msgspec.Struct, frozen=True):
    """The state before the pills that follow. May come in parts; ``last`` marks the last part."""

    pills: list[Pill]
    last: bool
    position: str


class Gap(msgspec.Struct, frozen=True):
    """Pills are missing, or were missing and have just been delivered, marked ``replayed``."""

    symbols: list[str]
    """``*`` stands for any symbol of the subscription."""
    after: str | None
    """Pills after this cursor are missing; None if the cursor is unknown."""
    until: str | None
    reason: str
    """The server's reason, or ``prev_broken`` if the client detected the gap."""
    filled: bool
    """All missing pills were delivered before this item."""
    pills: int = 0
    """Number of missing pills that were delivered."""
    error: str | None = None
    """Code that says why the gap was not filled."""


class Refused(msgspec.Struct, frozen=True):
    """A symbol that the platform refused, and that is not streamed."""

    symbol: str
    code: str


Item = Pill | Snapshot | Gap | Refused
"""What a stream delivers, in order of arrival."""


def parse_time(text: str) -> datetime:
    """``2026-11-20T01:02:03.004000Z`` as an aware datetime. Raises ValueError."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
