"""The two faces of a stream: an async iterator, and an iterator for plain code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any

from ..errors import PilloleError
from ..models import Item
from .item_queue import ItemQueue
from .runtime import StreamRuntime

Run = Callable[[], Coroutine[Any, Any, PilloleError]]
"""Keeps the stream connected; returns why it ended."""


class _Stream:
    def __init__(self, runtime: StreamRuntime) -> None:
        self._runtime = runtime
        self._queue: ItemQueue = runtime.queue
        self._is_iterated = False

    @property
    def position(self) -> str | None:
        """Everything up to here was delivered. Store it after you have acted; ``resume`` continues
        from it. None until the first connection is live."""
        return self._queue.position

    @property
    def state(self) -> str:
        """``connecting``, ``live``, ``waiting`` or ``closed``."""
        return self._runtime.state

    def _begin_iteration(self) -> None:
        if self._is_iterated:
            raise PilloleError("already_iterated", "A stream is iterated once: open another one.")
        self._is_iterated = True

    def _end(self, error: PilloleError | None) -> None:
        self._runtime.state = "closed"
        self._queue.end(error)


async def _run_to_end(stream: _Stream, run: Run) -> None:
    """An error of the consumer's own functions ends the stream too, and is raised by it."""
    try:
        stream._end(await run())
    except asyncio.CancelledError:
        stream._end(None)
        raise
    except PilloleError as error:
        stream._end(error)
    except Exception as error:
        failure = PilloleError("callback_failed", f"{type(error).__name__}: {error}")
        failure.__cause__ = error
        stream._end(failure)


class AsyncStream(_Stream):
    """Items for ``async for``. Its end closes the socket, by break or by an error too; so do
    leaving ``async with``, and `aclose`."""

    def __init__(self, runtime: StreamRuntime, run: Run) -> None:
        super().__init__(runtime)
        self._arrived = asyncio.Event()
        self._queue.on_put = self._arrived.set
        self._run = run
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> AsyncStream:
        self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def __aiter__(self) -> AsyncIterator[Item]:
        self._begin_iteration()
        self._start()
        try:
            while True:
                item = self._queue.take()
                if item is not None:
                    yield item
                elif self._queue.is_ended:
                    error = self._queue.pop_error()
                    if error is not None:
                        raise error
                    return
                else:
                    self._arrived.clear()
                    if not self._queue.has_waiting() and not self._queue.is_ended:
                        await self._arrived.wait()
        finally:
            # Without an await: an event loop that ends may close the iterator a second time.
            self._cancel()

    async def aclose(self) -> None:
        """Closes the socket. Waiting items are not delivered any more."""
        self._cancel()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _cancel(self) -> None:
        self._end(None)
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(_run_to_end(self, self._run))


class Stream(_Stream):
    """Items for ``for`` in plain code, notebooks included: sockets live in a thread of their own.
    The end of the loop closes the socket, by break or by an error too; so do leaving ``with``, and
    `close`."""

    def __init__(self, runtime: StreamRuntime, run: Run, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(runtime)
        self._arrived = threading.Event()
        self._queue.on_put = self._arrived.set
        ender = _Stream(runtime)
        self._future = asyncio.run_coroutine_threadsafe(_run_to_end(ender, run), loop)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Item]:
        self._begin_iteration()
        try:
            while True:
                item = self._queue.take()
                if item is not None:
                    yield item
                elif self._queue.is_ended:
                    error = self._queue.pop_error()
                    if error is not None:
                        raise error
                    return
                else:
                    self._arrived.clear()
                    if not self._queue.has_waiting() and not self._queue.is_ended:
                        # With a time-out, Ctrl-C interrupts the wait on every platform.
                        self._arrived.wait(1.0)
        finally:
            self.close()

    def close(self) -> None:
        """Closes the socket. Waiting items are not delivered any more."""
        self._end(None)
        self._future.cancel()

    def __del__(self) -> None:
        self._future.cancel()
