"""Items that wait for the consumer, which may be another thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import PilloleError
from ..models import Item, Pill, Snapshot
from .position import Position, PositionTracker


@dataclass
class Entry:
    """An item, and where its delivery leads to."""

    item: Item
    at: float
    """When it came, by the monotonic clock."""
    advance: tuple[int, int] | None = None
    mark: Position | None = None
    """A position that the server sent after the item."""
    replaces: bool = False


class ItemQueue:
    """Items in order, bounded by count and by age of the oldest: beyond that, `has_room` is false
    and the stream stops reading its socket.

    One thread (that of the event loop) puts, another or the same takes. In mode ``latest`` a newer
    pill of a symbol replaces the one that waits, and counts it in ``skipped``.
    """

    def __init__(
        self, start: str | None, *, conflate: bool, items_max: int, age_max_s: float
    ) -> None:
        self._entries: deque[Entry] = deque()
        self._by_symbol: dict[str, Entry] = {}
        self._lock = threading.Lock()
        self._weight = 0
        self._conflate = conflate
        self._items_max = items_max
        self._age_max_s = age_max_s
        self._delivered = PositionTracker(start)
        self._error: PilloleError | None = None
        self.is_ended = False
        self.on_put: Callable[[], None] = lambda: None
        """Called after each put and at the end."""
        self._room = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def position(self) -> str | None:
        """Position of the items that were taken."""
        with self._lock:
            return self._delivered.text

    def has_room(self) -> bool:
        """Whether the stream may read on."""
        with self._lock:
            return self._has_room()

    def _has_room(self) -> bool:
        if self.is_ended or not self._entries:
            return True
        oldest_s = time.monotonic() - self._entries[0].at
        return self._weight < self._items_max and oldest_s < self._age_max_s

    def has_waiting(self) -> bool:
        """Whether an item waits."""
        with self._lock:
            return bool(self._entries)

    def put(self, item: Item, advance: tuple[int, int] | None) -> None:
        """Adds an item, unless the stream has ended."""
        with self._lock:
            if self.is_ended:
                return
            if not self._replace(item):
                entry = Entry(item, time.monotonic(), advance)
                self._entries.append(entry)
                self._weight += _weight_of(item)
                if self._conflate and isinstance(item, Pill):
                    self._by_symbol[item.symbol] = entry
        self.on_put()

    def _replace(self, item: Item) -> bool:
        if not self._conflate or not isinstance(item, Pill):
            return False
        entry = self._by_symbol.get(item.symbol)
        if entry is None or not isinstance(entry.item, Pill):
            return False
        kept, skipped = (entry.item, 0) if item.late else (item, item.skipped)
        fields = {name: getattr(kept, name) for name in Pill.__struct_fields__}
        entry.item = Pill(**{**fields, "skipped": entry.item.skipped + 1 + skipped})
        return True

    def mark(self, position: Position, *, replaces: bool = False) -> None:
        """A position that holds once all waiting items are taken."""
        with self._lock:
            if self._entries:
                last = self._entries[-1]
                last.mark = position
                last.replaces = last.replaces or replaces
            else:
                self._reach(position, replaces)

    def _reach(self, position: Position, replaces: bool) -> None:
        if replaces:
            self._delivered.replace(position)
        else:
            self._delivered.raise_to(position)

    def take(self) -> Item | None:
        """The next item; None if none waits."""
        with self._lock:
            if not self._entries:
                return None
            entry = self._entries.popleft()
            self._weight -= _weight_of(entry.item)
            if self._conflate and isinstance(entry.item, Pill):
                self._by_symbol.pop(entry.item.symbol, None)
            if entry.advance is not None:
                self._delivered.advance(entry.advance)
            if entry.mark is not None:
                self._reach(entry.mark, entry.replaces)
            loop = self._loop if self._has_room() else None
        if loop is not None:
            self._loop = None
            loop.call_soon_threadsafe(self._room.set)
        return entry.item

    def end(self, error: PilloleError | None) -> None:
        """What waits can still be taken; after it comes the error, once, or the end."""
        with self._lock:
            if self.is_ended:
                return
            self.is_ended = True
            self._error = error
            loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._room.set)
        self.on_put()

    def pop_error(self) -> PilloleError | None:
        """The error of the end, the first time."""
        error, self._error = self._error, None
        return error

    async def wait_for_room(self) -> None:
        """Returns once there is room, or the stream has ended."""
        while not self.has_room():
            self._room.clear()
            self._loop = asyncio.get_running_loop()
            if self.has_room():
                break
            await self._room.wait()
        self._loop = None


def _weight_of(item: Item) -> int:
    return max(1, len(item.pills)) if isinstance(item, Snapshot) else 1
