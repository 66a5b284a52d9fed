"""Streams against a server in this process: what the scripts of the behaviour table cannot show."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from pillole import AsyncClient, Client, Gap, Pill, PilloleError, Snapshot

Handler = Callable[[ServerConnection, int], Awaitable[None]]


def frame(type_: str, **fields: Any) -> str:
    return json.dumps({"type": type_, **fields})


def pill(offset: int, symbol: str = "A") -> dict[str, Any]:
    return {
        "cursor": f"0-{offset}",
        "prev": f"0-{offset - 1}",
        "id": f"p-{offset}",
        "timestamp": "2026-11-20T01:02:03.004000Z",
        "symbol": symbol,
        "gross_spread_percent": 0.1,
        "market_state": "open",
        "confidence": 88,
        "received_at": "2026-11-20T01:02:03.011000Z",
    }


async def begin(socket: ServerConnection, offset: int) -> dict[str, Any]:
    """Answers ``auth`` and ``subscribe``; the log ends at an offset."""
    await socket.recv()
    limits = {"frame_in_bytes": 4096}
    shared = {"session": "s", "tier": "pro", "epoch": "k7f3", "heartbeat_ms": 60_000}
    await socket.send(frame("welcome", limits=limits, **shared))
    wanted: dict[str, Any] = json.loads(await socket.recv())
    position = f"k7f3:0-{offset}"
    recovered = True if "resume" in wanted else None
    shared = {"id": "s1", "position": position}
    answer = {"accepted": ["A"], "rejected": [], "recovered": recovered, "reason": None}
    await socket.send(frame("subscribed", **shared, **answer))
    if recovered is None:
        await socket.send(frame("snapshot", pills=[], last=True, **shared))
    await socket.send(frame("live", **shared))
    return wanted


class Server:
    """Serves each connection by a function; connections are counted from 1."""

    def __init__(self, handler: Handler) -> None:
        self.connections = 0
        self.ended = 0
        started = threading.Event()
        self.loop = asyncio.new_event_loop()

        async def handle(socket: ServerConnection) -> None:
            self.connections += 1
            try:
                await handler(socket, self.connections)
            finally:
                self.ended += 1

        async def run() -> None:
            async with serve(handle, "127.0.0.1", 0) as server:
                self.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
                self.stop = asyncio.Event()
                started.set()
                await self.stop.wait()

        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(run()))
        self.thread.start()
        started.wait()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join()


@pytest.fixture
def start() -> Iterator[Callable[[Handler], Server]]:
    servers: list[Server] = []

    def start(handler: Handler) -> Server:
        servers.append(Server(handler))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def one_pill(socket: ServerConnection, number: int) -> None:
    await begin(socket, number)
    await socket.send(frame("pill", **pill(number + 1)))
    await socket.wait_closed()


def test_leaving_the_loop_closes_the_socket(start: Callable[[Handler], Server]) -> None:
    server = start(one_pill)
    with Client("k", stream_url=server.url) as client:
        stream = client.stream("A")
        for item in stream:
            if isinstance(item, Pill):
                break
        wait_until(lambda: server.ended == 1)
        assert stream.position == "k7f3:0-2"
        with pytest.raises(PilloleError, match="already_iterated"):
            next(iter(stream))


def test_leaving_the_loop_closes_the_socket_of_asyncio(start: Callable[[Handler], Server]) -> None:
    server = start(one_pill)

    async def run() -> None:
        async with AsyncClient("k", stream_url=server.url) as client:
            async for item in client.stream("A"):
                if isinstance(item, Pill):
                    break
            await asyncio.to_thread(wait_until, lambda: server.ended == 1)

    asyncio.run(run())


def test_the_plain_face_works_where_a_loop_runs(start: Callable[[Handler], Server]) -> None:
    """As in a notebook."""
    server = start(one_pill)

    async def run() -> None:
        kinds = []
        with Client("k", stream_url=server.url) as client:
            for item in client.stream("A"):
                kinds.append(type(item))
                if isinstance(item, Pill):
                    break
        assert kinds[0] is Snapshot

    asyncio.run(run())


def test_memory_stays_over_forced_reconnections(start: Callable[[Handler], Server]) -> None:
    async def cut_after_a_pill(socket: ServerConnection, number: int) -> None:
        await begin(socket, number)
        await socket.send(frame("pill", **pill(number + 1)))
        socket.transport.abort()

    server = start(cut_after_a_pill)
    cursors: list[str] = []
    tracemalloc.start()
    try:
        with Client("k", stream_url=server.url) as client:
            for item in client.stream("A", reconnect_max_s=0.001):
                if not isinstance(item, Pill):
                    continue
                cursors.append(item.cursor)
                if len(cursors) == 100:
                    gc.collect()
                    before = tracemalloc.get_traced_memory()[0]
                if len(cursors) == 400:
                    break
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(set(cursors)) == 400
    # 300 connections later; the list of cursors itself takes some 20 KiB.
    assert grown < 300_000


def test_the_end_of_retries_is_raised() -> None:
    with Client("k", stream_url="ws://127.0.0.1:1") as client:
        notes: list[Any] = []
        stream = client.stream("A", reconnect_max_s=0.01, attempts_max=3, on_note=notes.append)
        with pytest.raises(PilloleError) as caught:
            list(stream)
    assert caught.value.code == "retries_exhausted"
    assert [note.code for note in notes] == ["connection_lost", "connection_lost"]


def test_an_error_of_a_callback_is_raised(start: Callable[[Handler], Server]) -> None:
    async def broken_chain(socket: ServerConnection, number: int) -> None:
        await begin(socket, 10)
        await socket.send(frame("pill", **pill(11)))
        await socket.send(frame("pill", **pill(20)))
        await socket.wait_closed()

    def on_gap(after: str | None, until: str | None) -> None:
        raise ValueError(f"{after} to {until}")

    server = start(broken_chain)
    items: list[Any] = []
    with Client("k", stream_url=server.url) as client:
        with pytest.raises(PilloleError, match="0-11 to 0-19") as caught:
            items.extend(client.stream("A", on_gap=on_gap))
        assert caught.value.code == "callback_failed"


def test_a_slow_consumer_holds_the_server_back(start: Callable[[Handler], Server]) -> None:
    sent = 0

    async def flood(socket: ServerConnection, number: int) -> None:
        nonlocal sent
        await begin(socket, 10)
        for offset in range(11, 40_011):
            # More than the buffers of both sockets hold.
            await socket.send(frame("pill", padding="x" * 1_000, **pill(offset)))
            sent += 1
        await socket.wait_closed()

    server = start(flood)
    with Client("k", stream_url=server.url) as client:
        stream = client.stream("A", buffer_max=100)
        items = iter(stream)
        next(items)
        seen = -1
        while seen != sent:
            seen = sent
            time.sleep(0.3)
        assert sent < 40_000
        rest = list(itertools.islice(items, 40_000))
        assert not any(isinstance(item, Gap) for item in rest)
    assert stream.position == "k7f3:0-40010"
