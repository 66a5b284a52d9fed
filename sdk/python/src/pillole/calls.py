"""The calls and streams that both clients have: what they take, and the requests they become."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Generic, Literal, TypeVar

import httpx

from .errors import PilloleError
from .exports import ExportFormat, ExportRequest
from .fetching import run_steps_async
from .models import HistoryPage
from .rest import ATTEMPTS_MAX, Steps, decode, get_steps, path_with
from .settings import Settings
from .stream.connection import Address, keep_connected
from .stream.item_queue import ItemQueue
from .stream.position import PositionTracker
from .stream.runtime import Note, StreamRuntime
from .stream.subscription import Filter, Mode, Resume, subscription_of

Analysis = Literal[
    "bars", "summary", "states", "movers", "outliers", "correlation", "cadence", "confidence"
]
Time = str | datetime
Symbols = list[str] | tuple[str, ...]
Order = Literal["asc", "desc"]

ObjectT = TypeVar("ObjectT")
HistoryT = TypeVar("HistoryT")
ExportT = TypeVar("ExportT")
StreamT = TypeVar("StreamT")

PAGE_PILLS = 5_000
BUFFER_MAX = 10_000
"""Pills that wait for the consumer; those of one frame may exceed this bound."""
BUFFER_AGE_MAX_S = 10.0
"""Age of the oldest item that waits; beyond it the socket is not read."""
RECONNECT_MAX_S = 30.0


class Calls(Settings, ABC, Generic[ObjectT, HistoryT, ExportT, StreamT]):
    """Calls and streams. The types are those of their answers, which asyncio awaits: of an object
    of JSON, of history, of an export, and of a stream."""

    def verify(
        self, symbols: str | Sequence[str] | None = None, *, id: str | None = None
    ) -> ObjectT:
        """The verdict on the newest pill of a symbol, of up to 20, or on the pill ``id``."""
        return self._object(verify_path(symbols, id))

    def history(
        self,
        symbols: str | Sequence[str],
        start: Time,
        end: Time | None = None,
        *,
        order: Order = "asc",
    ) -> HistoryT:
        """All pills of a symbol, or of up to 20 in one time order; ``end`` is now by default."""
        query = {
            **_subject(symbols),
            "from": time_text(start),
            "to": None if end is None else time_text(end),
            "order": None if order == "asc" else order,
            "limit": PAGE_PILLS,
        }
        return self._history(path_with("/api/pills", query))

    def export(
        self,
        start: Time,
        end: Time,
        *,
        symbols: Sequence[str] | None = None,
        filter: Filter | None = None,
        format: ExportFormat = "parquet",
        path: str | os.PathLike[str] | None = None,
        verify: bool = False,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> ExportT:
        """Makes an export of a range, waits for it and downloads it; one call.

        ``symbols``: all by default. ``path``: of the file, which is written beside and renamed; by
        default a temporary file, which ends with the result. The length and the SHA-256 are always
        checked, the receipt with ``verify`` (which needs pyarrow). ``on_progress`` is called with
        the export as the API shows it; by `AsyncClient` in a thread of its own. Needs the scope
        ``exports``.
        """
        body: dict[str, Any] = {"from": time_text(start), "to": time_text(end), "format": format}
        if symbols is not None:
            body["symbols"] = [symbols] if isinstance(symbols, str) else list(symbols)
        if filter is not None:
            body["filter"] = dict(filter)
        return self._export(ExportRequest(body, path, verify, on_progress))

    def analytics(self, name: Analysis, **query: Any) -> ObjectT:
        """An analysis of the API: ``analytics("bars", symbol="7203.T", interval="1m")``."""
        return self._object(path_with(f"/api/analytics/{name}", _joined(query)))

    def symbols(self, venue: str | None = None) -> ObjectT:
        """All symbols, or those of a venue."""
        return self._object(path_with("/api/symbols", {"venue": venue}))

    def account(self) -> ObjectT:
        """Plan, limits and addresses. Free of charge."""
        return self._object("/api/account")

    def usage(self, days: int | None = None) -> ObjectT:
        """Calls by day, hour, key and endpoint. Free of charge."""
        return self._object(path_with("/api/usage", {"days": days}))

    def status(self) -> ObjectT:
        """State of the service. Needs no key."""
        return self._object("/api/status", needs_key=False)

    def stream(
        self,
        symbols: str | Sequence[str],
        *,
        mode: Mode = "all",
        filter: Filter | None = None,
        snapshot: bool = True,
        backfill: bool = False,
        resume: Resume | None = None,
        fill_gaps: bool = True,
        refused_symbols: Literal["raise", "deliver"] = "raise",
        buffer_max: int = BUFFER_MAX,
        buffer_age_max_s: float = BUFFER_AGE_MAX_S,
        reconnect_max_s: float = RECONNECT_MAX_S,
        attempts_max: int | None = None,
        on_gap: Callable[[str | None, str | None], None] | None = None,
        on_note: Callable[[Note], None] | None = None,
    ) -> StreamT:
        """Opens a stream; its items are `Pill`, `Snapshot`, `Gap` and `Refused`. With asyncio it
        begins with the iteration.

        ``symbols``: names, or ``"*"`` for all. ``resume``: a position, or ``{"since": time}``.
        ``on_gap(gap_start, gap_end)`` is called with the cursors around each gap that could not be
        filled, None where they are unknown; ``on_note`` for heartbeats, quiet, status, drain, and
        the errors after which the stream reconnects; both in the thread of the streams.
        ``attempts_max``: consecutive attempts that may open nothing before ``retries_exhausted`` is
        raised; None: the stream tries for ever.
        """
        self._require_stream()
        start = resume if isinstance(resume, str) else None
        queue = ItemQueue(
            start, conflate=mode == "latest", items_max=buffer_max, age_max_s=buffer_age_max_s
        )
        runtime = StreamRuntime(
            subscription_of(symbols, mode, filter, snapshot, backfill),
            resume,
            queue,
            # Gaps are filled by calls of the API.
            self._read_gap_page if fill_gaps and self._api_url else None,
            on_gap,
            on_note,
            refused_symbols == "raise",
            PositionTracker(start),
        )

        async def run() -> PilloleError:
            address = await self._stream_address()
            return await keep_connected(runtime, address, reconnect_max_s, attempts_max)

        return self._open_stream(runtime, run)

    @abstractmethod
    def _object(self, path: str, needs_key: bool = True) -> ObjectT: ...

    @abstractmethod
    def _history(self, first: str) -> HistoryT: ...

    @abstractmethod
    def _export(self, request: ExportRequest) -> ExportT: ...

    @abstractmethod
    def _open_stream(
        self, runtime: StreamRuntime, run: Callable[[], Coroutine[Any, Any, PilloleError]]
    ) -> StreamT: ...

    def _steps(self, path: str, attempts_max: int = ATTEMPTS_MAX) -> Steps:
        return get_steps(self._api_url, path, attempts_max)

    async def _stream_address(self) -> Address:
        """The address that is set; else the one that the API names."""
        if self._stream_url:
            return self._address_at(self._stream_url)
        account = object_of(await self._get_apart("/api/account"))
        url = (account.get("services") or {}).get("stream")
        if not isinstance(url, str):
            raise PilloleError("not_configured", "The API names no stream: pass stream_url.")
        return self._address_at(url)

    async def _read_gap_page(self, path: str) -> HistoryPage:
        page: HistoryPage = decode(await self._get_apart(path), HistoryPage)
        return page

    async def _get_apart(self, path: str) -> bytes:
        """A call by a connection of the stream's own loop."""
        async with httpx.AsyncClient(**self._http_options()) as http:
            return await run_steps_async(http, self._steps(path), self._credentials())


def latest_path(symbols: str | Sequence[str] | None) -> str:
    """Path of the newest pills."""
    return path_with("/api/pills/latest", _subject(symbols))


def verify_path(symbols: str | Sequence[str] | None, id_: str | None = None) -> str:
    """Path of a verdict."""
    return path_with("/api/market/verify", {**_subject(symbols), "id": id_})


def time_text(value: Time) -> str:
    """A time as the platform reads it. A datetime without a zone is refused."""
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        message = "The datetime has no time zone: use datetime(…, tzinfo=timezone.utc)."
        raise PilloleError("time_malformed", message)
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def object_of(body: bytes) -> dict[str, Any]:
    """The body as an object of JSON. Raises PilloleError ``answer_malformed``."""
    answer: dict[str, Any] = decode(body, dict[str, Any])
    return answer


def _subject(symbols: str | Sequence[str] | None) -> dict[str, str]:
    if symbols is None:
        return {}
    return {"symbol": symbols} if isinstance(symbols, str) else {"symbols": ",".join(symbols)}


def _joined(query: Mapping[str, Any]) -> dict[str, Any]:
    """Lists as the API reads them; ``from_`` stands for ``from``, which Python reserves."""

    def text(value: Any) -> Any:
        if isinstance(value, datetime):
            return time_text(value)
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else value

    return {name.rstrip("_"): text(value) for name, value in query.items()}
