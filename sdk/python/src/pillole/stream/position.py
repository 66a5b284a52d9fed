"""Cursors and positions of the log."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CURSOR = re.compile(r"(\d{1,5})-(\d{1,16})", re.ASCII)
_POSITION = re.compile(r"([a-z0-9]{1,16}):(\d{1,5}-\d{1,16}(?:,\d{1,5}-\d{1,16})*)?", re.ASCII)


@dataclass(frozen=True)
class Position:
    """All pills up to and including these offsets, by partition, were delivered."""

    epoch: str
    offsets: dict[int, int]


def parse_cursor(text: str | None) -> tuple[int, int] | None:
    """Partition and offset of ``<partition>-<offset>``; None if the text is no cursor."""
    match = _CURSOR.fullmatch(text or "")
    return None if match is None else (int(match[1]), int(match[2]))


def offset_of(cursor: str | None) -> int:
    """Offset of a cursor; -1, before every pill, if the text is no cursor."""
    parsed = parse_cursor(cursor)
    return -1 if parsed is None else parsed[1]


def parse_position(text: str | None) -> Position | None:
    """Reads ``<epoch>:<p>-<o>,<p>-<o>``; None if the text is no position."""
    match = _POSITION.fullmatch(text or "")
    if match is None:
        return None
    parts = (one.split("-") for one in (match[2] or "").split(",") if one)
    return Position(match[1], {int(partition): int(offset) for partition, offset in parts})


class PositionTracker:
    """A position that only grows, unless it turns out to be impossible: see `replace`."""

    def __init__(self, start: str | None = None) -> None:
        self._epoch: str | None = None
        self._offsets: dict[int, int] = {}
        first = parse_position(start)
        if first is not None:
            self.raise_to(first)

    @property
    def text(self) -> str | None:
        """``<epoch>:<p>-<o>,…``, partitions ascending; None until a position is known."""
        if self._epoch is None:
            return None
        parts = (f"{partition}-{offset}" for partition, offset in sorted(self._offsets.items()))
        return f"{self._epoch}:{','.join(parts)}"

    def raise_to(self, position: Position) -> None:
        """Everything up to the position was delivered. Another epoch replaces all offsets."""
        if position.epoch != self._epoch:
            self._offsets = {}
        self._epoch = position.epoch
        for partition, offset in position.offsets.items():
            self._advance(partition, offset)

    def replace(self, position: Position) -> None:
        """Forgets a position that the log does not have."""
        self._epoch = None
        self.raise_to(position)

    def advance(self, cursor: tuple[int, int]) -> None:
        """Everything up to the cursor was delivered in its partition."""
        if self._epoch is not None:
            self._advance(*cursor)

    def _advance(self, partition: int, offset: int) -> None:
        if offset > self._offsets.get(partition, -1):
            self._offsets[partition] = offset
