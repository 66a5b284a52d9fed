"""Missing pills: requested from history, delivered, and reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

from ..errors import PilloleError
from ..models import Gap, Pill
from ..rest import next_path
from .frames import GapFrame
from .position import offset_of, parse_cursor, parse_position
from .runtime import StreamRuntime

PAGES_MAX = 100
"""Pages that are read for one gap."""
SYMBOLS_MAX = 20
"""Symbols of one break that are filled, since their calls count; more are only reported."""
PAGE_PILLS = 5_000


@dataclass(frozen=True)
class Break:
    """A gap of one symbol that the client itself detected."""

    symbol: str
    after: str | None
    until: str


async def fill_frame(runtime: StreamRuntime, frame: GapFrame) -> None:
    """Fills a gap that the server reported, if possible, and reports it."""
    pills, error = 0, None
    is_fillable = runtime.read_page is not None and frame.fill is not None
    if is_fillable and frame.fill is not None:
        pills, error = await _fill(runtime, _with_limit(frame.fill), None, frame.after)
    filled = is_fillable and error is None
    gap = Gap(frame.symbols, frame.after, frame.until, frame.reason, filled, pills, error)
    runtime.report(gap)


async def fill_breaks(
    runtime: StreamRuntime, breaks: Sequence[Break], reason: str, epoch: str
) -> None:
    """Fills breaks with the same reason, or reports them as one gap if there are too many."""
    if runtime.read_page is None or len(breaks) > SYMBOLS_MAX:
        symbols = [one.symbol for one in breaks]
        one = breaks[0] if len(breaks) == 1 else None
        after, until = (one.after, one.until) if one is not None else (None, None)
        runtime.report(Gap(symbols, after, until, reason, False))
        return
    for one in breaks:
        query = {"symbol": one.symbol, "epoch": epoch, "until": one.until, "limit": PAGE_PILLS}
        path = f"/api/pills?{urlencode(query | ({'after': one.after} if one.after else {}))}"
        pills, error, filled = 0, None, False
        if max(offset_of(one.until), 0) > offset_of(one.after):
            pills, error = await _fill(runtime, path, one.until, one.after)
            filled = error is None
        gap = Gap([one.symbol], one.after, one.until, reason, filled, pills, error)
        runtime.report(gap)


def report_unknown(runtime: StreamRuntime, symbols: Sequence[str], reason: str) -> None:
    """Reports that pills may be missing, but that nobody knows which ones."""
    runtime.report(Gap(list(symbols), None, None, reason, False))


async def _fill(
    runtime: StreamRuntime, path: str, until: str | None, after: str | None
) -> tuple[int, str | None]:
    """Delivers the pills of a gap, except those of earlier connections: their number, and why the
    gap is not filled."""
    pills = 0

    def deliver(pill: Pill) -> None:
        nonlocal pills
        known = max(offset_of(after), runtime.chains.delivered_before(pill.symbol))
        if offset_of(pill.cursor) <= known or not runtime.subscription.matches(pill):
            return
        pills += 1
        runtime.chains.add_pill(pill)
        fields = {name: getattr(pill, name) for name in Pill.__struct_fields__}
        runtime.deliver(Pill(**{**fields, "replayed": True}))

    last: str | None = None
    position: str | None = None
    next_: str | None = path
    try:
        for _ in range(PAGES_MAX):
            if next_ is None:
                break
            await runtime.queue.wait_for_room()
            assert runtime.read_page is not None
            page = await runtime.read_page(next_)
            for pill in page.data:
                deliver(pill)
                last = pill.cursor
            position = page.position
            next_ = next_path(page.next, next_)
    except PilloleError as error:
        return pills, error.code
    if next_ is not None:
        return pills, "gap_too_long"
    # If the record at `until` had no effect, no pill has its cursor, but the position covers it.
    reached = until is None or offset_of(last) >= max(offset_of(until), 0)
    return pills, None if reached or _is_covered(position, until) else "history_incomplete"


def _with_limit(path: str) -> str:
    """A path that the platform sent, with the largest page unless it names one."""
    query = urlsplit(path).query
    if not query or "limit" in parse_qs(query):
        return path
    return f"{path}&limit={PAGE_PILLS}"


def _is_covered(position: str | None, until: str | None) -> bool:
    cursor, covered = parse_cursor(until), parse_position(position)
    if cursor is None or covered is None:
        return False
    return covered.offsets.get(cursor[0], -1) >= cursor[1]
