"""History: pills of a time range, page by page, and as data frames."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, overload

from .errors import PilloleError
from .models import HistoryPage, Pill, UnknownSymbol

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Engine = Literal["pandas", "polars", "arrow"]
PAGES_MAX = 100_000
"""Pages of one range: a bound against a server that never ends."""
_TIMES = ("timestamp", "received_at")
_NUMBERS = ("gross_spread_percent", "confidence")
_FLAGS = ("late", "backfill")
_COLUMNS = (
    *("timestamp", "symbol", "gross_spread_percent", "market_state", "confidence"),
    *("received_at", "id", "cursor", "late", "backfill"),
)


class _Range:
    as_of: dict[str, Any] | None = None
    """What history knew at the first page; None before that page."""
    receipt: dict[str, Any] | None = None
    """Receipt of the pages read so far, for `verify_receipt`; complete after the last one."""
    unknown_symbols: tuple[UnknownSymbol, ...] = ()
    """Requested symbols without a pill, each with the symbol that was probably meant."""

    def _note(self, page: HistoryPage) -> None:
        self.as_of = page.as_of
        self.receipt = page.receipt
        self.unknown_symbols = tuple(page.unknown_symbols)


class History(_Range):
    """The pills of a range in order time. Each page is requested when it is read, and each is a
    call; iterating again requests them again."""

    def __init__(self, read: Callable[[str | None], HistoryPage]) -> None:
        self._read = read

    def pages(self) -> Iterator[HistoryPage]:
        """The same pills, page by page."""
        next_: str | None = None
        for _ in range(PAGES_MAX):
            page = self._read(next_)
            self._note(page)
            yield page
            if page.next is None:
                return
            next_ = page.next
        raise _endless()

    def __iter__(self) -> Iterator[Pill]:
        for page in self.pages():
            yield from page.data

    @overload
    def to_df(
        self, tz: str = ..., count: int | None = ..., engine: Literal["pandas"] = ...
    ) -> pandas.DataFrame: ...
    @overload
    def to_df(
        self, tz: str = ..., count: int | None = ..., *, engine: Literal["polars"]
    ) -> polars.DataFrame: ...
    @overload
    def to_df(
        self, tz: str = ..., count: int | None = ..., *, engine: Literal["arrow"]
    ) -> pyarrow.Table: ...
    def to_df(self, tz: str = "UTC", count: int | None = None, engine: Engine = "pandas") -> Any:
        """A data frame with aware times in ``tz``; ``count``: at most so many pills."""
        return frame_of(list(islice(self, count)), tz, engine)


class AsyncHistory(_Range):
    """The same for ``async for``."""

    def __init__(self, read: Callable[[str | None], Coroutine[Any, Any, HistoryPage]]) -> None:
        self._read = read

    async def pages(self) -> AsyncIterator[HistoryPage]:
        """The same pills, page by page."""
        next_: str | None = None
        for _ in range(PAGES_MAX):
            page = await self._read(next_)
            self._note(page)
            yield page
            if page.next is None:
                return
            next_ = page.next
        raise _endless()

    async def __aiter__(self) -> AsyncIterator[Pill]:
        async for page in self.pages():
            for pill in page.data:
                yield pill

    @overload
    async def to_df(
        self, tz: str = ..., count: int | None = ..., engine: Literal["pandas"] = ...
    ) -> pandas.DataFrame: ...
    @overload
    async def to_df(
        self, tz: str = ..., count: int | None = ..., *, engine: Literal["polars"]
    ) -> polars.DataFrame: ...
    @overload
    async def to_df(
        self, tz: str = ..., count: int | None = ..., *, engine: Literal["arrow"]
    ) -> pyarrow.Table: ...
    async def to_df(
        self, tz: str = "UTC", count: int | None = None, engine: Engine = "pandas"
    ) -> Any:
        """A data frame with aware times in ``tz``; ``count``: at most so many pills."""
        pills: list[Pill] = []
        async for pill in self:
            if count is not None and len(pills) >= count:
                break
            pills.append(pill)
        return frame_of(pills, tz, engine)


def frame_of(pills: list[Pill], tz: str, engine: Engine) -> Any:
    """Pills as a data frame. Raises ImportError if the library is not installed."""
    columns = {name: [getattr(pill, name) for pill in pills] for name in _COLUMNS}
    if engine == "pandas":
        import pandas as pd

        # The types are those of a frame with pills, also where no pill is.
        frame = pd.DataFrame(columns).astype(dict.fromkeys(_NUMBERS, float))
        frame = frame.astype(dict.fromkeys(_FLAGS, bool))
        for name in _TIMES:
            frame[name] = pd.to_datetime(frame[name], utc=True).dt.as_unit("us").dt.tz_convert(tz)
        return frame
    if engine == "polars":
        import polars as pl

        types = {**dict.fromkeys(_NUMBERS, pl.Float64), **dict.fromkeys(_FLAGS, pl.Boolean)}
        schema = {name: types.get(name, pl.String) for name in _COLUMNS}
        texts = pl.DataFrame(columns, schema=schema)
        return texts.with_columns(
            pl.col(name)
            .str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC")
            .dt.convert_time_zone(tz)
            for name in _TIMES
        )
    import pyarrow as pa
    import pyarrow.compute as pc

    types = {**dict.fromkeys(_NUMBERS, pa.float64()), **dict.fromkeys(_FLAGS, pa.bool_())}
    table = pa.table(
        columns, schema=pa.schema([(name, types.get(name, pa.string())) for name in _COLUMNS])
    )
    for name in _TIMES:
        at = table.schema.get_field_index(name)
        texts = pc.replace_substring(table[name], "Z", "")
        times = texts.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz=tz))
        table = table.set_column(at, name, times)
    return table


def _endless() -> PilloleError:
    return PilloleError("answer_malformed", f"History has more than {PAGES_MAX} pages.")
