"""The state of one stream, over all of its connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from ..errors import PilloleError
from ..models import Gap, HistoryPage, Item, Pill
from .chains import SymbolChains
from .frames import Drain, Heartbeat, Quiet, Status
from .item_queue import ItemQueue
from .position import PositionTracker, parse_cursor
from .subscription import Resume, Subscription

Note = Quiet | Status | Drain | Heartbeat | PilloleError
"""What a stream tells besides its items; a `PilloleError` says why it reconnects."""


@dataclass
class StreamRuntime:
    """Parts that the connections of a stream share."""

    subscription: Subscription
    resume: Resume | None
    queue: ItemQueue
    read_page: Callable[[str], Awaitable[HistoryPage]] | None
    """Reads a page of history; None: gaps are only reported."""
    on_gap: Callable[[str | None, str | None], None] | None
    on_note: Callable[[Note], None] | None
    throws_refusals: bool
    received: PositionTracker = field(default_factory=PositionTracker)
    chains: SymbolChains = field(default_factory=SymbolChains)
    refused: set[str] = field(default_factory=set)
    state: Literal["connecting", "live", "waiting", "closed"] = "connecting"

    def deliver(self, item: Item, advances: bool = False) -> None:
        """Queues an item. ``advances``: everything up to it was received in its partition."""
        cursor = parse_cursor(item.cursor) if advances and isinstance(item, Pill) else None
        if cursor is not None:
            self.received.advance(cursor)
        self.queue.put(item, cursor)

    def report(self, gap: Gap) -> None:
        """Delivers a gap, and calls the caller's function if the gap stays."""
        self.deliver(gap)
        if not gap.filled and self.on_gap is not None:
            self.on_gap(gap.after, gap.until)

    def note(self, note: Note) -> None:
        """Tells the caller something that is no item."""
        if self.on_note is not None:
            self.on_note(note)
