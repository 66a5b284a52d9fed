"""Plays scripts of the behaviour table. Each line of the input has settings as JSON; the output has
the items as lines of JSON, then a line that tells how the stream ended."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import msgspec

from pillole import AsyncClient, Client, Item, PilloleError

KEY = "pil_live_test"


def say(value: dict[str, Any]) -> None:
    """One line of JSON."""
    print(json.dumps(value), flush=True)


def line_of(item: Item) -> dict[str, Any]:
    """An item under the names that both clients share."""
    kind = type(item).__name__.removesuffix("Frame").lower()
    return {**msgspec.to_builtins(item), "type": kind}


def drive(urls: dict[str, Any], options: dict[str, Any], count: int | None) -> None:
    """Reads ``count`` items, or all until an error ends the stream, by the plain face."""
    with Client(KEY, **urls) as client:
        stream = client.stream(reconnect_max_s=0.05, **options)
        for number, item in enumerate(stream, 1):
            say(line_of(item))
            if number == count:
                break
        say({"end": None, "position": stream.position})


async def drive_async(urls: dict[str, Any], options: dict[str, Any], count: int | None) -> None:
    """The same by the face for asyncio."""
    async with AsyncClient(KEY, **urls) as client:
        stream = client.stream(reconnect_max_s=0.05, **options)
        number = 0
        async for item in stream:
            say(line_of(item))
            number += 1
            if number == count:
                break
        say({"end": None, "position": stream.position})


for line in sys.stdin:
    settings = json.loads(line)
    arguments = (settings["urls"], settings["options"], settings["count"])
    try:
        if settings["face"] == "plain":
            drive(*arguments)
        else:
            asyncio.run(drive_async(*arguments))
    except PilloleError as error:
        say({"end": error.code, "position": error.position})
