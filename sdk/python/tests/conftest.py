"""What tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stream_server import Handler, Server, Start


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[Server] = []

    def start(handler: Handler, **options: Any) -> Server:
        servers.append(Server(handler, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
