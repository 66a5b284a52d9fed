"""Certificates of one's own, by ``ssl_context``, for calls and streams."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import trustme

from pillole import Client, Pill, PilloleError
from stream_server import Start, one_pill


class Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def api_url(server_context: ssl.SSLContext) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    server.socket = server_context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"https://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_context_that_trusts_the_server(
    start: Start, authority: trustme.CA, server_context: ssl.SSLContext, api_url: str
) -> None:
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    stream_url = start(one_pill, ssl=server_context).url
    with Client("k", api_url=api_url, stream_url=stream_url, ssl_context=trusting) as client:
        assert client.status() == {}
        assert any(isinstance(item, Pill) for item in client.stream("A") if item)


def test_without_it_the_server_is_refused(
    start: Start, server_context: ssl.SSLContext, api_url: str
) -> None:
    stream_url = start(one_pill, ssl=server_context).url
    with Client("k", api_url=api_url, stream_url=stream_url) as client:
        with pytest.raises(PilloleError, match="CERTIFICATE_VERIFY_FAILED"):
            client.get("/api/status", attempts_max=1)
        with pytest.raises(PilloleError, match="CERTIFICATE_VERIFY_FAILED"):
            list(client.stream("A", reconnect_max_s=0.01, attempts_max=1))
