"""A stream's server in this process, whose connections a test serves by a function."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

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


async def begin(
    socket: ServerConnection, offset: int, heartbeat_ms: int = 60_000
) -> dict[str, Any]:
    """Answers ``auth`` and ``subscribe``; the log ends at an offset."""
    await socket.recv()
    limits = {"frame_in_bytes": 4096}
    shared = {"session": "s", "tier": "pro", "epoch": "k7f3", "heartbeat_ms": heartbeat_ms}
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

    def __init__(self, handler: Handler, **options: Any) -> None:
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
            async with serve(handle, "127.0.0.1", 0, **options) as server:
                scheme = "ws" if options.get("ssl") is None else "wss"
                self.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
                self.stop = asyncio.Event()
                started.set()
                await self.stop.wait()

        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(run()))
        self.thread.start()
        started.wait()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join()


Start = Callable[..., Server]
"""Starts a server for a handler, with options of `websockets.serve`."""


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def one_pill(socket: ServerConnection, number: int) -> None:
    await begin(socket, number)
    await socket.send(frame("pill", **pill(number + 1)))
    await socket.wait_closed()
