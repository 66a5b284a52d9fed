"""What customers of other feeds suffer from: memory, mute connections, storms, slow consumers."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from pillole import AsyncClient, Client, Gap, Pill, PilloleError
from stream_server import Start, begin, frame, pill, wait_until

WARM, RECONNECTIONS = 200, 1_200
RSS_GROWTH_MAX = 8 * 1024 * 1024
"""A connection that stayed would hold some 50 KB: 50 MB of the 1,000 that are counted."""


def rss_bytes() -> int:
    """Resident memory of this process, of Linux."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is of Linux")
def test_memory_stays_over_forced_reconnections(start: Start) -> None:
    async def cut_after_a_pill(socket: ServerConnection, number: int) -> None:
        await begin(socket, number)
        await socket.send(frame("pill", **pill(number + 1)))
        socket.transport.abort()

    server = start(cut_after_a_pill)
    offsets: list[int] = []
    warm = 0
    with Client("k", stream_url=server.url) as client:
        for item in client.stream("A", reconnect_max_s=0.001):
            assert not isinstance(item, Gap)
            if not isinstance(item, Pill):
                continue
            offsets.append(int(item.cursor.removeprefix("0-")))
            if len(offsets) == WARM:
                gc.collect()
                warm = rss_bytes()
            if len(offsets) == RECONNECTIONS:
                break
        gc.collect()
        grown = rss_bytes() - warm
    assert offsets == list(range(2, RECONNECTIONS + 2))
    assert grown < RSS_GROWTH_MAX


def test_heartbeats_keep_a_connection_that_has_no_pills(start: Start) -> None:
    """The time-out is on heartbeats, never on data: a quiet market is no dead connection."""

    async def only_heartbeats(socket: ServerConnection, number: int) -> None:
        await begin(socket, 10, heartbeat_ms=200)
        generator = {"state": "alive", "last_received_at": None}
        for _ in range(20):
            await asyncio.sleep(0.05)
            await socket.send(
                frame("heartbeat", time="t", position="k7f3:0-10", generator=generator)
            )
        await socket.send(frame("pill", **pill(11)))
        await socket.wait_closed()

    server = start(only_heartbeats)
    with Client("k", stream_url=server.url) as client:
        item = next(item for item in client.stream("A") if isinstance(item, Pill))
    # Two and a half times as long as a mute connection lives.
    assert (item.cursor, server.connections) == ("0-11", 1)


def test_a_handshake_that_asks_to_wait_is_obeyed(start: Start) -> None:
    attempts: list[float] = []

    def refuse_twice(socket: ServerConnection, request: Request) -> Response | None:
        attempts.append(time.monotonic())
        if len(attempts) > 2:
            return None
        status = HTTPStatus.TOO_MANY_REQUESTS
        return Response(status.value, status.phrase, Headers({"retry-after": "1"}), b"")

    async def one(socket: ServerConnection, number: int) -> None:
        await begin(socket, 1)
        await socket.send(frame("pill", **pill(2)))
        await socket.wait_closed()

    server = start(one, process_request=refuse_twice)
    notes: list[Any] = []
    with Client("k", stream_url=server.url) as client:
        stream = client.stream("A", reconnect_max_s=0.01, on_note=notes.append)
        assert next(item for item in stream if isinstance(item, Pill)).cursor == "0-2"
    assert [(note.status, note.retry_after_s) for note in notes] == [(429, 1.0), (429, 1.0)]
    assert min(attempts[1] - attempts[0], attempts[2] - attempts[1]) >= 1


PILLS = 20_000


def test_a_slow_async_for_stalls_no_other_stream_and_holds_its_server_back(start: Start) -> None:
    sent = {"slow": 0, "quick": 0}

    def counted(name: str) -> Any:
        async def serve(socket: ServerConnection, number: int) -> None:
            await begin(socket, 10)
            for offset in range(11, 11 + PILLS):
                await socket.send(frame("pill", padding="x" * 1_000, **pill(offset)))
                sent[name] += 1
            await socket.wait_closed()

        return serve

    slow, quick = start(counted("slow")), start(counted("quick"))

    async def count(url: str, release: asyncio.Event | None) -> int:
        pills = 0
        async with AsyncClient("k", stream_url=url) as client:
            # Bounded by age alone: the count of items would never stop the reading.
            stream = client.stream("A", buffer_max=10 * PILLS, buffer_age_max_s=0.2)
            async for item in stream:
                pills += isinstance(item, Pill)
                if release is not None and pills == 1:
                    await release.wait()
                if pills == PILLS:
                    break
        return pills

    async def run() -> tuple[int, int, int]:
        release = asyncio.Event()
        waiting = asyncio.create_task(count(slow.url, release))
        other = await count(quick.url, None)
        seen = -1
        while seen != sent["slow"]:
            seen = sent["slow"]
            await asyncio.sleep(0.5)
        release.set()
        return other, seen, await waiting

    other, held_at, rest = asyncio.run(run())
    assert (other, rest) == (PILLS, PILLS)
    assert held_at < PILLS


def test_the_address_of_streams_may_be_left_to_the_api(start: Start) -> None:
    with pytest.raises(PilloleError, match="api_url, where the client reads"):
        Client("k").stream("A")
    with pytest.raises(PilloleError, match="no ws"):
        Client("k", stream_url="ftp://x").stream("A")
    with Client("k", api_url="http://127.0.0.1:1") as client:
        with pytest.raises(PilloleError) as caught:
            list(client.stream("A"))
        assert caught.value.code == "network"


def test_close_ends_a_waiting_iterator(start: Start) -> None:
    async def silent(socket: ServerConnection, number: int) -> None:
        await begin(socket, 1)
        await socket.wait_closed()

    server = start(silent)
    client = Client("k", stream_url=server.url)
    stream = client.stream("A", snapshot=False)
    iterator = iter(stream)
    next(iterator)
    client.close()
    assert list(iterator) == []
    wait_until(lambda: server.ended == 1)
