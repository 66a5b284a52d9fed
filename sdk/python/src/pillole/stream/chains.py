"""The last pill of each symbol, to drop duplicates and to see broken chains of ``prev``."""

from __future__ import annotations

from dataclasses import dataclass

from ..models import Pill
from .position import offset_of, parse_cursor


@dataclass
class _Chain:
    cursor: str
    partition: int
    offset: int
    """A live pill at or below this offset is a duplicate."""
    delivered: int = -1
    """Offset of the last delivered pill; -1 if only a snapshot was delivered."""
    delivered_before: int = -1
    """`delivered` as it was when the connection number `connection` began."""
    connection: int = 0


class SymbolChains:
    """One entry for each symbol; the platform has at most 100,000."""

    def __init__(self) -> None:
        self._chains: dict[str, _Chain] = {}
        self._epoch: str | None = None
        self._connection = 0

    def begin_connection(self, epoch: str) -> None:
        """Begins another connection; another epoch of the log clears all chains."""
        self._connection += 1
        if self._epoch is not None and self._epoch != epoch:
            self._chains.clear()
        self._epoch = epoch

    def clear(self) -> None:
        """Forgets all pills: their offsets will be those of other pills."""
        self._chains.clear()

    def is_duplicate(self, pill: Pill) -> bool:
        """Whether the pill was delivered, or is covered by a snapshot."""
        chain, at = self._chains.get(pill.symbol), parse_cursor(pill.cursor)
        if chain is None or at is None:
            return False
        return at[0] == chain.partition and at[1] <= chain.offset

    def was_delivered(self, pill: Pill) -> bool:
        """Whether the pill was delivered; snapshots do not count, since they lack backfill."""
        chain, at = self._chains.get(pill.symbol), parse_cursor(pill.cursor)
        if chain is None or at is None:
            return False
        return at[0] == chain.partition and at[1] <= chain.delivered

    def broken_after(self, pill: Pill) -> str | None:
        """The cursor after which pills are missing, if ``prev`` shows that some are."""
        chain = self._chains.get(pill.symbol)
        if chain is None or pill.prev is None or pill.prev == chain.cursor:
            return None
        return chain.cursor

    def last_cursor(self, symbol: str) -> str | None:
        """Cursor of the last known pill of a symbol."""
        chain = self._chains.get(symbol)
        return None if chain is None else chain.cursor

    def add_pill(self, pill: Pill) -> None:
        """Records a delivered pill; an older pill of a fill does not move the chain back."""
        chain = self._advance(pill.symbol, pill.cursor)
        if chain is not None:
            chain.delivered = max(chain.delivered, offset_of(pill.cursor))

    def add_snapshot(self, pill: Pill) -> None:
        """Records a pill of a snapshot: the next pill follows its ``last_cursor``."""
        self._advance(pill.symbol, pill.last_cursor or pill.cursor)

    def delivered_before(self, symbol: str) -> int:
        """Highest offset of a symbol that connections before the present one delivered."""
        chain = self._chains.get(symbol)
        if chain is None:
            return -1
        is_present = chain.connection == self._connection
        return chain.delivered_before if is_present else chain.delivered

    def _advance(self, symbol: str, cursor: str) -> _Chain | None:
        at = parse_cursor(cursor)
        if at is None:
            return None
        chain = self._chains.get(symbol)
        if chain is None:
            chain = _Chain(cursor, at[0], at[1], connection=self._connection)
            self._chains[symbol] = chain
        if chain.connection != self._connection:
            chain.connection = self._connection
            chain.delivered_before = chain.delivered
        if at[1] >= chain.offset:
            chain.cursor, chain.partition, chain.offset = cursor, at[0], at[1]
        return chain
