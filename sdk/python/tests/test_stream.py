"""Streams against a server in this process: what the scripts of the behaviour table cannot show."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from pillole import AsyncClient, Client, Gap, Pill, PilloleError, Snapshot
from stream_server import Start, begin, frame, one_pill, pill, wait_until


def test_leaving_the_loop_closes_the_socket(start: Start) -> None:
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


def test_leaving_the_loop_closes_the_socket_of_asyncio(start: Start) -> None:
    server = start(one_pill)

    async def run() -> None:
        async with AsyncClient("k", stream_url=server.url) as client:
            async for item in client.stream("A"):
                if isinstance(item, Pill):
                    break
            await asyncio.to_thread(wait_until, lambda: server.ended == 1)

    asyncio.run(run())


def test_the_plain_face_works_where_a_loop_runs(start: Start) -> None:
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


def test_the_end_of_retries_is_raised() -> None:
    with Client("k", stream_url="ws://127.0.0.1:1") as client:
        notes: list[Any] = []
        stream = client.stream("A", reconnect_max_s=0.01, attempts_max=3, on_note=notes.append)
        with pytest.raises(PilloleError) as caught:
            list(stream)
    assert caught.value.code == "retries_exhausted"
    assert [note.code for note in notes] == ["connection_lost", "connection_lost"]


def test_an_error_of_a_callback_is_raised(start: Start) -> None:
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


def test_a_slow_consumer_holds_the_server_back(start: Start) -> None:
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
