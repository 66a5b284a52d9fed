"""What a stream is subscribed to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import msgspec

from ..errors import PilloleError
from ..models import Pill

FRAME_BYTES_MAX = 4_096
"""The server's limit on one frame, unless ``welcome`` has another."""

Mode = Literal["all", "latest"]
Resume = str | Mapping[Literal["since"], str]
"""A position of any answer, or ``{"since": time}``."""


class Filter(TypedDict, total=False):
    """Pills that do not pass are not sent."""

    min_confidence: float
    min_spread: float
    max_spread: float
    states: Sequence[str]


@dataclass(frozen=True)
class Subscription:
    """Symbols and how they are streamed."""

    symbols: tuple[str, ...]
    mode: Mode = "all"
    filter: Filter | None = None
    snapshot: bool = True
    backfill: bool = False
    is_chained: bool = field(init=False)
    """Whether ``prev`` names the pill that the stream sent before."""

    def __post_init__(self) -> None:
        if not self.symbols:
            raise PilloleError("no_symbols", 'Name at least one symbol, or "*".')
        chained = self.mode == "all" and self.filter is None and not self.backfill
        object.__setattr__(self, "is_chained", chained)

    def frames(self, resume: Resume | None, bytes_max: int) -> list[dict[str, Any]]:
        """The subscribe frames: as few as the limit on their size allows, each answered apart."""
        frames: list[dict[str, Any]] = []
        part: list[str] = []
        empty = len(msgspec.json.encode(self._frame("s9999", [], resume)))
        size = empty
        for symbol in self.symbols:
            more = len(msgspec.json.encode(symbol)) + 1
            if part and size + more > bytes_max:
                frames.append(self._frame(f"s{len(frames) + 1}", part, resume))
                part, size = [], empty
            part.append(symbol)
            size += more
        frames.append(self._frame(f"s{len(frames) + 1}", part, resume))
        return frames

    def _frame(self, id_: str, symbols: list[str], resume: Resume | None) -> dict[str, Any]:
        frame: dict[str, Any] = {
            "op": "subscribe",
            "id": id_,
            "symbols": symbols,
            "mode": self.mode,
            "snapshot": self.snapshot,
            "backfill": self.backfill,
        }
        if self.filter is not None:
            frame["filter"] = dict(self.filter)
        if resume is not None:
            frame["resume"] = resume if isinstance(resume, str) else dict(resume)
        return frame

    def matches(self, pill: Pill) -> bool:
        """Whether the stream would have sent a pill of history to this subscription.

        History has all pills, so a fill leaves out what the stream leaves out: pills that the
        filter excludes, backfill that was not requested, and late pills in mode ``latest``.
        """
        if pill.backfill and not self.backfill:
            return False
        if pill.late and self.mode == "latest":
            return False
        wanted = self.filter
        if wanted is None:
            return True
        states = wanted.get("states")
        return (
            pill.confidence >= wanted.get("min_confidence", 0)
            and pill.gross_spread_percent >= wanted.get("min_spread", float("-inf"))
            and pill.gross_spread_percent <= wanted.get("max_spread", float("inf"))
            and (states is None or pill.market_state in states)
        )


def subscription_of(
    symbols: str | Sequence[str],
    mode: Mode,
    filter_: Filter | None,
    snapshot: bool,
    backfill: bool,
) -> Subscription:
    """The subscription of a stream. Raises PilloleError ``no_symbols``."""
    named = (symbols,) if isinstance(symbols, str) else tuple(dict.fromkeys(symbols))
    return Subscription(named, mode, filter_, snapshot, backfill)
