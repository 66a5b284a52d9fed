"""`Client` for plain code, and `AsyncClient` for asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Literal, TypeVar, overload
from urllib.parse import urlsplit, urlunsplit

import httpx

from .errors import PilloleError
from .exports import Export, Exporter, ExportFormat
from .history import AsyncHistory, History
from .models import HistoryPage, Latest, LatestMany, Usable
from .rest import (
    ATTEMPTS_MAX,
    TIMEOUT_S,
    Answer,
    BodyReader,
    Send,
    Wait,
    address_of,
    decode,
    get_steps,
    next_path,
    path_with,
)
from .stream.connection import Address, keep_connected
from .stream.item_queue import ItemQueue
from .stream.position import PositionTracker
from .stream.runtime import Note, StreamRuntime
from .stream.streams import AsyncStream, Stream
from .stream.subscription import Filter, Mode, Resume, subscription_of

Analysis = Literal[
    "bars", "summary", "states", "movers", "outliers", "correlation", "cadence", "confidence"
]
Time = str | datetime
Symbols = list[str] | tuple[str, ...]
Order = Literal["asc", "desc"]
T = TypeVar("T")

STREAM_PATH = "/api/stream"
PAGE_PILLS = 5_000
BUFFER_MAX = 10_000
"""Pills that wait for the consumer; those of one frame may exceed this bound."""
BUFFER_AGE_MAX_S = 10.0
"""Age of the oldest item that waits; beyond it the socket is not read."""
RECONNECT_MAX_S = 30.0
CLOSE_MAX_S = 2.0


class _Settings:
    """What both clients are made of."""

    def __init__(
        self,
        key: str | None,
        api_url: str | None,
        stream_url: str | None,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self._key = os.environ.get("PILLOLE_KEY") if key is None else key
        self._api_url = api_url or os.environ.get("PILLOLE_API_URL")
        self._stream_url = stream_url or os.environ.get("PILLOLE_STREAM_URL")
        self._ssl_context = ssl_context

    def _headers(self) -> dict[str, str]:
        key = {} if self._key is None else {"x-api-key": self._require_key()}
        return {"accept": "application/json", **key}

    def _http_options(self) -> dict[str, Any]:
        # A redirect must not carry the key to another address.
        verify = {} if self._ssl_context is None else {"verify": self._ssl_context}
        return {"timeout": TIMEOUT_S, "follow_redirects": False, **verify}

    def _require_key(self) -> str:
        key = self._key
        if not key:
            raise PilloleError("key_missing", "No key is set: pass `key` to the client.")
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            message = "The key has blanks or line breaks: pass exactly the key."
            raise PilloleError("key_malformed", message)
        return key

    def _require_stream(self) -> None:
        """Fails at once rather than in the first attempt to connect."""
        self._require_key()
        if self._stream_url:
            self._address_at(self._stream_url)
        elif not self._api_url:
            message = "stream_url is not set, nor api_url, which would tell the address of streams."
            raise PilloleError("not_configured", message)

    async def _stream_address(self) -> Address:
        """The address that is set; else the one that the API names."""
        if self._stream_url:
            return self._address_at(self._stream_url)
        async with httpx.AsyncClient(**self._http_options()) as http:
            account = _object(await _get(http, self, "/api/account"))
        url = (account.get("services") or {}).get("stream")
        if not isinstance(url, str):
            raise PilloleError("not_configured", "The API names no stream: pass stream_url.")
        return self._address_at(url)

    def _address_at(self, stream_url: str) -> Address:
        parts = urlsplit(stream_url)
        scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
        if scheme not in ("ws", "wss") or not parts.netloc:
            message = f"stream_url is no ws(s) address: {stream_url}"
            raise PilloleError("not_configured", message)
        path = STREAM_PATH if parts.path in ("", "/") else parts.path
        url = urlunsplit((scheme, parts.netloc, path, parts.query, ""))
        return Address(url, self._require_key(), self._ssl_context if scheme == "wss" else None)

    def _runtime(
        self,
        symbols: str | Sequence[str],
        *,
        mode: Mode,
        filter: Filter | None,
        snapshot: bool,
        backfill: bool,
        resume: Resume | None,
        fill_gaps: bool,
        refused_symbols: Literal["raise", "deliver"],
        buffer_max: int,
        buffer_age_max_s: float,
        on_gap: Callable[[str | None, str | None], None] | None,
        on_note: Callable[[Note], None] | None,
    ) -> StreamRuntime:
        start = resume if isinstance(resume, str) else None
        return StreamRuntime(
            subscription_of(symbols, mode, filter, snapshot, backfill),
            resume,
            ItemQueue(
                start,
                conflate=mode == "latest",
                items_max=buffer_max,
                age_max_s=buffer_age_max_s,
            ),
            # Gaps are filled by calls of the API.
            self._read_gap_page if fill_gaps and self._api_url else None,
            on_gap,
            on_note,
            refused_symbols == "raise",
            PositionTracker(start),
        )

    async def _read_gap_page(self, path: str) -> HistoryPage:
        """A page of history, by a connection of the stream's own loop."""
        async with httpx.AsyncClient(**self._http_options()) as http:
            page: HistoryPage = decode(await _get(http, self, path), HistoryPage)
            return page


async def _get(
    http: httpx.AsyncClient, settings: _Settings, path: str, attempts_max: int = ATTEMPTS_MAX
) -> bytes:
    steps = get_steps(settings._api_url, path, attempts_max)
    answer: Answer | httpx.HTTPError | None = None
    try:
        while True:
            step = steps.send(answer) if answer is not None else next(steps)
            answer = None
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Send):
                try:
                    answer = await _fetch(http, step.url, settings._headers())
                except httpx.HTTPError as error:
                    answer = error
    except StopIteration as end:
        return bytes(end.value)


async def _fetch(http: httpx.AsyncClient, url: str, headers: dict[str, str]) -> Answer:
    async def read() -> Answer:
        body = BodyReader()
        async with http.stream("GET", url, headers=headers) as response:
            async for part in response.aiter_bytes():
                body.add(part)
            return body.answer_of(response)

    try:
        return await asyncio.wait_for(read(), TIMEOUT_S)
    except (TimeoutError, asyncio.TimeoutError) as error:
        raise httpx.ReadTimeout(f"No answer within {TIMEOUT_S:g} s.") from error


class Client(_Settings):
    """The platform, for plain code and notebooks. Calls raise only `PilloleError`, and GETs are
    repeated where that is safe. Streams live in one thread of their own.

    ``key``: an API key. ``api_url``: origin of the API, ``https://api.example``. ``stream_url``:
    origin or whole address of streams, ``wss://stream.example``; without it the API names it.
    What is not given comes from PILLOLE_KEY, PILLOLE_API_URL and PILLOLE_STREAM_URL.
    ``ssl_context``: certificates of your own.
    """

    def __init__(
        self,
        key: str | None = None,
        *,
        api_url: str | None = None,
        stream_url: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(key, api_url, stream_url, ssl_context)
        self._http = httpx.Client(**self._http_options())
        self._streams: _StreamThread | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _fetch(self, url: str) -> Answer:
        body = BodyReader()
        with self._http.stream("GET", url, headers=self._headers()) as response:
            for part in response.iter_bytes():
                body.add(part)
            return body.answer_of(response)

    def close(self) -> None:
        """Closes connections and streams."""
        self._http.close()
        streams, self._streams = self._streams, None
        if streams is not None:
            streams.close()

    def get(self, path: str, *, attempts_max: int = ATTEMPTS_MAX) -> bytes:
        """The body of an answer of the API to a path with its query."""
        steps = get_steps(self._api_url, path, attempts_max)
        answer: Answer | httpx.HTTPError | None = None
        try:
            while True:
                step = steps.send(answer) if answer is not None else next(steps)
                answer = None
                if isinstance(step, Wait):
                    time.sleep(step.seconds)
                elif isinstance(step, Send):
                    try:
                        answer = self._fetch(step.url)
                    except httpx.HTTPError as error:
                        answer = error
        except StopIteration as end:
            return bytes(end.value)

    @overload
    def latest(self, symbols: str | None = ...) -> Latest: ...
    @overload
    def latest(self, symbols: Symbols) -> LatestMany: ...
    def latest(self, symbols: str | Symbols | None = None) -> Latest | LatestMany:
        """The newest pill of all symbols, of one, or of each of up to 100. One call."""
        path, type_ = latest_call(symbols)
        answer: Latest | LatestMany = decode(self._keyed(path), type_)
        return answer

    def verify(
        self, symbols: str | Sequence[str] | None = None, *, id: str | None = None
    ) -> dict[str, Any]:
        """The verdict on the newest pill of a symbol, of up to 20, or on the pill ``id``."""
        return _object(self._keyed(verify_path(symbols, id)))

    def usable(self, symbol: str) -> Usable:
        """Whether you may act on a symbol now. Never raises; in doubt the answer is no."""
        asked_at = time.monotonic()
        try:
            answer = _object(self.get(verify_path(symbol, None), attempts_max=1))
        except PilloleError as error:
            return refusal(error)
        return judge(symbol, answer, time.monotonic() - asked_at)

    def history(
        self,
        symbols: str | Sequence[str],
        start: Time,
        end: Time | None = None,
        *,
        order: Order = "asc",
    ) -> History:
        """All pills of a symbol, or of up to 20 in one time order; ``end`` is now by default."""
        first = history_path(symbols, start, end, order)

        def read(next_: str | None) -> HistoryPage:
            path = first if next_ is None else next_path(next_, first)
            page: HistoryPage = decode(self._keyed(path or first), HistoryPage)
            return page

        return History(read)

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
    ) -> Export:
        """Makes an export of a range, waits for it and downloads it; one call.

        ``symbols``: all by default. ``path``: of the file, which is written beside and renamed; by
        default a temporary file, which ends with the result. The length and the SHA-256 are always
        checked, the receipt with ``verify`` (which needs pyarrow). ``on_progress`` is called with
        the export as the API shows it. Needs the scope ``exports``.
        """
        self._require_key()
        request = export_request(start, end, symbols, filter, format)
        exporter = Exporter(self._http, address_of(self._api_url, "/"), self._headers())
        return exporter.run(request, path, verify, on_progress)

    def analytics(self, name: Analysis, **query: Any) -> dict[str, Any]:
        """An analysis of the API: ``analytics("bars", symbol="7203.T", interval="1m")``."""
        return _object(self._keyed(path_with(f"/api/analytics/{name}", _joined(query))))

    def symbols(self, venue: str | None = None) -> dict[str, Any]:
        """All symbols, or those of a venue."""
        return _object(self._keyed(path_with("/api/symbols", {"venue": venue})))

    def account(self) -> dict[str, Any]:
        """Plan, limits and addresses. Free of charge."""
        return _object(self._keyed("/api/account"))

    def usage(self, days: int | None = None) -> dict[str, Any]:
        """Calls by day, hour, key and endpoint. Free of charge."""
        return _object(self._keyed(path_with("/api/usage", {"days": days})))

    def status(self) -> dict[str, Any]:
        """State of the service. Needs no key."""
        return _object(self.get("/api/status"))

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
    ) -> Stream:
        """Opens a stream; its items are `Pill`, `Snapshot`, `Gap` and `Refused`.

        ``symbols``: names, or ``"*"`` for all. ``resume``: a position, or ``{"since": time}``.
        ``on_gap(gap_start, gap_end)`` is called with the cursors around each gap that could not be
        filled, None where they are unknown; ``on_note`` for heartbeats, quiet, status, drain, and
        the errors after which the stream reconnects; both in the thread of the streams.
        ``attempts_max``: consecutive attempts that may open nothing before ``retries_exhausted`` is
        raised; None: the stream tries for ever.
        """
        self._require_stream()
        runtime = self._runtime(
            symbols,
            mode=mode,
            filter=filter,
            snapshot=snapshot,
            backfill=backfill,
            resume=resume,
            fill_gaps=fill_gaps,
            refused_symbols=refused_symbols,
            buffer_max=buffer_max,
            buffer_age_max_s=buffer_age_max_s,
            on_gap=on_gap,
            on_note=on_note,
        )

        async def run() -> PilloleError:
            address = await self._stream_address()
            return await keep_connected(runtime, address, reconnect_max_s, attempts_max)

        if self._streams is None:
            self._streams = _StreamThread()
        return Stream(runtime, run, self._streams.loop)

    def _keyed(self, path: str) -> bytes:
        self._require_key()
        return self.get(path)


class _StreamThread:
    """The event loop of streams, in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        run = self.loop.run_forever
        self._thread = threading.Thread(target=run, name="pillole-streams", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Closes all sockets; waits for them for two seconds at most."""
        ending = asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop)
        with contextlib.suppress(TimeoutError, concurrent.futures.TimeoutError):
            ending.result(CLOSE_MAX_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLOSE_MAX_S)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    # Sockets that were cut are closed in the next turn.
    await asyncio.sleep(0)


class AsyncClient(_Settings):
    """The same for asyncio."""

    def __init__(
        self,
        key: str | None = None,
        *,
        api_url: str | None = None,
        stream_url: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(key, api_url, stream_url, ssl_context)
        self._http = httpx.AsyncClient(**self._http_options())

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections of calls; each stream is closed by itself."""
        await self._http.aclose()

    async def get(self, path: str, *, attempts_max: int = ATTEMPTS_MAX) -> bytes:
        """The body of an answer of the API to a path with its query."""
        return await _get(self._http, self, path, attempts_max)

    @overload
    async def latest(self, symbols: str | None = ...) -> Latest: ...
    @overload
    async def latest(self, symbols: Symbols) -> LatestMany: ...
    async def latest(self, symbols: str | Symbols | None = None) -> Latest | LatestMany:
        """The newest pill of all symbols, of one, or of each of up to 100. One call."""
        path, type_ = latest_call(symbols)
        answer: Latest | LatestMany = decode(await self._keyed(path), type_)
        return answer

    async def verify(
        self, symbols: str | Sequence[str] | None = None, *, id: str | None = None
    ) -> dict[str, Any]:
        """The verdict on the newest pill of a symbol, of up to 20, or on the pill ``id``."""
        return _object(await self._keyed(verify_path(symbols, id)))

    async def usable(self, symbol: str) -> Usable:
        """Whether you may act on a symbol now. Never raises; in doubt the answer is no."""
        asked_at = time.monotonic()
        try:
            answer = _object(await self.get(verify_path(symbol, None), attempts_max=1))
        except PilloleError as error:
            return refusal(error)
        return judge(symbol, answer, time.monotonic() - asked_at)

    def history(
        self,
        symbols: str | Sequence[str],
        start: Time,
        end: Time | None = None,
        *,
        order: Order = "asc",
    ) -> AsyncHistory:
        """All pills of a symbol, or of up to 20 in one time order; ``end`` is now by default."""
        first = history_path(symbols, start, end, order)

        async def read(next_: str | None) -> HistoryPage:
            path = first if next_ is None else next_path(next_, first)
            page: HistoryPage = decode(await self._keyed(path or first), HistoryPage)
            return page

        return AsyncHistory(read)

    async def export(
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
    ) -> Export:
        """See `Client.export`; in a thread of its own, since it writes a file."""

        def run() -> Export:
            with Client(self._key, api_url=self._api_url, ssl_context=self._ssl_context) as client:
                return client.export(
                    start,
                    end,
                    symbols=symbols,
                    filter=filter,
                    format=format,
                    path=path,
                    verify=verify,
                    on_progress=on_progress,
                )

        return await asyncio.to_thread(run)

    async def analytics(self, name: Analysis, **query: Any) -> dict[str, Any]:
        """An analysis of the API: ``analytics("bars", symbol="7203.T", interval="1m")``."""
        return _object(await self._keyed(path_with(f"/api/analytics/{name}", _joined(query))))

    async def symbols(self, venue: str | None = None) -> dict[str, Any]:
        """All symbols, or those of a venue."""
        return _object(await self._keyed(path_with("/api/symbols", {"venue": venue})))

    async def account(self) -> dict[str, Any]:
        """Plan, limits and addresses. Free of charge."""
        return _object(await self._keyed("/api/account"))

    async def usage(self, days: int | None = None) -> dict[str, Any]:
        """Calls by day, hour, key and endpoint. Free of charge."""
        return _object(await self._keyed(path_with("/api/usage", {"days": days})))

    async def status(self) -> dict[str, Any]:
        """State of the service. Needs no key."""
        return _object(await self.get("/api/status"))

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
    ) -> AsyncStream:
        """Opens a stream as `Client.stream` does; it begins with the iteration."""
        self._require_stream()
        runtime = self._runtime(
            symbols,
            mode=mode,
            filter=filter,
            snapshot=snapshot,
            backfill=backfill,
            resume=resume,
            fill_gaps=fill_gaps,
            refused_symbols=refused_symbols,
            buffer_max=buffer_max,
            buffer_age_max_s=buffer_age_max_s,
            on_gap=on_gap,
            on_note=on_note,
        )

        async def run() -> PilloleError:
            address = await self._stream_address()
            return await keep_connected(runtime, address, reconnect_max_s, attempts_max)

        return AsyncStream(runtime, run)

    async def _keyed(self, path: str) -> bytes:
        self._require_key()
        return await self.get(path)


def latest_call(symbols: str | Sequence[str] | None) -> tuple[str, type[Latest] | type[LatestMany]]:
    """Path of the newest pills, and the type of its answer."""
    path = path_with("/api/pills/latest", _subject(symbols))
    return path, Latest if symbols is None or isinstance(symbols, str) else LatestMany


def verify_path(symbols: str | Sequence[str] | None, id_: str | None) -> str:
    """Path of a verdict."""
    return path_with("/api/market/verify", {**_subject(symbols), "id": id_})


def export_request(
    start: Time,
    end: Time,
    symbols: Sequence[str] | None,
    filter: Filter | None,
    format: ExportFormat,
) -> dict[str, Any]:
    """The body of a request for an export."""
    body: dict[str, Any] = {"from": time_text(start), "to": time_text(end), "format": format}
    if symbols is not None:
        body["symbols"] = [symbols] if isinstance(symbols, str) else list(symbols)
    return body if filter is None else {**body, "filter": dict(filter)}


def history_path(symbols: str | Sequence[str], start: Time, end: Time | None, order: Order) -> str:
    """Path of the first page of a time range."""
    query = {
        **_subject(symbols),
        "from": time_text(start),
        "to": None if end is None else time_text(end),
        "order": None if order == "asc" else order,
        "limit": PAGE_PILLS,
    }
    return path_with("/api/pills", query)


def time_text(value: Time) -> str:
    """A time as the platform reads it. A datetime without a zone is refused: nobody knows it."""
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        message = "The datetime has no time zone: use datetime(…, tzinfo=timezone.utc)."
        raise PilloleError("time_malformed", message)
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def judge(symbol: str, verdict: Mapping[str, Any], took_s: float) -> Usable:
    """Whether a verdict allows to act, with the time for which it holds from now on."""
    subject = verdict.get("subject")
    if not isinstance(subject, dict) or subject.get("symbol") != symbol:
        return Usable(False, "verdict_malformed", 0.0)
    full = dict(verdict)
    if verdict.get("usable") is not True or verdict.get("verdict") != "verified":
        reasons = verdict.get("reasons") or [{}]
        reason = reasons[0].get("code") or verdict.get("verdict") or "unknown"
        return Usable(False, str(reason), 0.0, full)
    # Both times are the server's, so that a wrong local clock does not matter.
    try:
        ends, asked = (
            datetime.fromisoformat(str(verdict[name]).replace("Z", "+00:00"))
            for name in ("valid_until", "checked_at")
        )
    except (KeyError, ValueError):
        return Usable(False, "verdict_malformed", 0.0, full)
    valid_s = (ends - asked).total_seconds() - took_s
    if valid_s <= 0:
        return Usable(False, "verdict_expired", 0.0, full)
    return Usable(True, "verified", valid_s, full)


def refusal(error: PilloleError) -> Usable:
    """No verdict: no."""
    missing = error.code == "endpoint_unavailable"
    return Usable(False, "verify_unavailable" if missing else error.code, 0.0)


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


def _object(body: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = decode(body, dict[str, Any])
    return answer
