"""`Client` for plain code, and `AsyncClient` for asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, overload

import httpx

from .auth import Auth
from .calls import Calls, Symbols, latest_path, object_of, verify_path
from .errors import PilloleError
from .exports import Export, Exporter, ExportRequest
from .fetching import run_steps, run_steps_async
from .history import AsyncHistory, History
from .models import HistoryPage, Latest, LatestMany, Usable
from .rest import ATTEMPTS_MAX, address_of, decode, next_path
from .stream.runtime import StreamRuntime
from .stream.streams import AsyncStream, Stream
from .verdict import judge, refusal

Run = Callable[[], Coroutine[Any, Any, PilloleError]]
Object = dict[str, Any]
CLOSE_MAX_S = 2.0


class Client(Calls[Object, History, Export, Stream]):
    """The platform, for plain code and notebooks. Calls raise only `PilloleError`, and GETs are
    repeated where that is safe. Streams live in one thread of their own.

    ``key``: an API key. ``auth``: signatures or tokens in its place, e.g. by `sign_requests` or
    `bearer_tokens`. ``api_url``: origin of the API, ``https://api.example``. ``stream_url``:
    origin or whole address of streams, ``wss://stream.example``; without it the API names it.
    What is not given comes from PILLOLE_KEY (unless ``auth`` is given), PILLOLE_API_URL and
    PILLOLE_STREAM_URL.
    ``ssl_context``: certificates of your own.
    """

    def __init__(
        self,
        key: str | None = None,
        *,
        auth: Auth | None = None,
        api_url: str | None = None,
        stream_url: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            key, auth=auth, api_url=api_url, stream_url=stream_url, ssl_context=ssl_context
        )
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

    def close(self) -> None:
        """Closes connections and streams."""
        self._http.close()
        streams, self._streams = self._streams, None
        if streams is not None:
            streams.close()

    def get(self, path: str, *, attempts_max: int = ATTEMPTS_MAX) -> bytes:
        """The body of an answer of the API to a path with its query."""
        return run_steps(self._http, self._steps(path, attempts_max), self._credentials())

    @overload
    def latest(self, symbols: str | None = ...) -> Latest: ...
    @overload
    def latest(self, symbols: Symbols) -> LatestMany: ...
    def latest(self, symbols: str | Symbols | None = None) -> Latest | LatestMany:
        """The newest pill of all symbols, of one, or of each of up to 100. One call."""
        return _latest_of(symbols, self._keyed(latest_path(symbols)))

    def usable(self, symbol: str) -> Usable:
        """Whether you may act on a symbol now. Never raises; in doubt the answer is no."""
        asked_at = time.monotonic()
        try:
            answer = object_of(self.get(verify_path(symbol), attempts_max=1))
        except PilloleError as error:
            return refusal(error)
        return judge(symbol, answer, time.monotonic() - asked_at)

    def _keyed(self, path: str) -> bytes:
        self._require_credentials()
        return self.get(path)

    def _object(self, path: str, needs_key: bool = True) -> Object:
        return object_of(self._keyed(path) if needs_key else self.get(path))

    def _history(self, first: str) -> History:
        def read(next_: str | None) -> HistoryPage:
            page: HistoryPage = decode(self._keyed(next_path(next_, first) or first), HistoryPage)
            return page

        return History(read)

    def _export(self, request: ExportRequest) -> Export:
        credentials = self._require_credentials()
        exporter = Exporter(self._http, address_of(self._api_url, "/"), credentials)
        return exporter.run(request)

    def _open_stream(self, runtime: StreamRuntime, run: Run) -> Stream:
        if self._streams is None:
            self._streams = _StreamThread()
        return Stream(runtime, run, self._streams.loop)


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


class AsyncClient(
    Calls[Coroutine[Any, Any, Object], AsyncHistory, Coroutine[Any, Any, Export], AsyncStream]
):
    """The same for asyncio."""

    def __init__(
        self,
        key: str | None = None,
        *,
        auth: Auth | None = None,
        api_url: str | None = None,
        stream_url: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            key, auth=auth, api_url=api_url, stream_url=stream_url, ssl_context=ssl_context
        )
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
        return await run_steps_async(
            self._http, self._steps(path, attempts_max), self._credentials()
        )

    @overload
    async def latest(self, symbols: str | None = ...) -> Latest: ...
    @overload
    async def latest(self, symbols: Symbols) -> LatestMany: ...
    async def latest(self, symbols: str | Symbols | None = None) -> Latest | LatestMany:
        """The newest pill of all symbols, of one, or of each of up to 100. One call."""
        return _latest_of(symbols, await self._keyed(latest_path(symbols)))

    async def usable(self, symbol: str) -> Usable:
        """Whether you may act on a symbol now. Never raises; in doubt the answer is no."""
        asked_at = time.monotonic()
        try:
            answer = object_of(await self.get(verify_path(symbol), attempts_max=1))
        except PilloleError as error:
            return refusal(error)
        return judge(symbol, answer, time.monotonic() - asked_at)

    async def _keyed(self, path: str) -> bytes:
        self._require_credentials()
        return await self.get(path)

    async def _object(self, path: str, needs_key: bool = True) -> Object:
        return object_of(await (self._keyed(path) if needs_key else self.get(path)))

    def _history(self, first: str) -> AsyncHistory:
        async def read(next_: str | None) -> HistoryPage:
            body = await self._keyed(next_path(next_, first) or first)
            page: HistoryPage = decode(body, HistoryPage)
            return page

        return AsyncHistory(read)

    async def _export(self, request: ExportRequest) -> Export:
        def run() -> Export:
            with Client(
                self._key, auth=self._auth, api_url=self._api_url, ssl_context=self._ssl_context
            ) as client:
                return client._export(request)

        # It writes a file, so it has a thread of its own.
        return await asyncio.to_thread(run)

    def _open_stream(self, runtime: StreamRuntime, run: Run) -> AsyncStream:
        return AsyncStream(runtime, run)


def _latest_of(symbols: str | Symbols | None, body: bytes) -> Latest | LatestMany:
    is_one = symbols is None or isinstance(symbols, str)
    answer: Latest | LatestMany = decode(body, Latest if is_one else LatestMany)
    return answer
