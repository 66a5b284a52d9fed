"""Calls against a server that answers as the platform does."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pillole import AsyncClient, Client, PilloleError
from pillole.calls import time_text

PILL = {
    "cursor": "0-1",
    "prev": None,
    "id": "p-1",
    "timestamp": "2026-11-20T01:02:03.004000Z",
    "symbol": "7203.T",
    "gross_spread_percent": 0.1,
    "market_state": "open",
    "confidence": 88,
    "received_at": "2026-11-20T01:02:03.011000Z",
}
VERDICT = {
    "subject": {"symbol": "7203.T"},
    "usable": True,
    "verdict": "verified",
    "reasons": [],
    "checked_at": "2026-11-20T01:02:03.000000Z",
    "valid_until": "2026-11-20T01:02:08.000000Z",
}


class Platform:
    """Answers in order; the paths and keys of the requests are kept."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str], Any]] = []
        self.requests: list[tuple[str, str | None]] = []
        self.drip_s = 0.0
        """Before each 100 bytes of an answer."""
        platform = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                platform.requests.append((self.path, self.headers.get("x-api-key")))
                status, headers, body = platform.answers.pop(0)
                raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(raw)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                for at in range(0, len(raw), 100):
                    time.sleep(platform.drip_s)
                    self.wfile.write(raw[at : at + 100])

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        self.answers.append((status, headers, body))


@pytest.fixture
def platform() -> Iterator[Platform]:
    platform = Platform()
    yield platform
    platform.server.shutdown()


@pytest.fixture
def client(platform: Platform) -> Iterator[Client]:
    with Client("pil_live_x", api_url=platform.url) as client:
        yield client


def problem(code: str, status: int, **more: Any) -> dict[str, Any]:
    return {"type": f"/problems/{code}", "title": code, "status": status, "code": code, **more}


def test_latest_of_one_and_of_many(platform: Platform, client: Client) -> None:
    platform.answer({"data": PILL, "position": "k:0-1"})
    assert client.latest("7203.T").data.time == datetime(
        2026, 11, 20, 1, 2, 3, 4_000, tzinfo=timezone.utc
    )
    fault = {"code": "no_pill", "detail": "None yet."}
    platform.answer({"data": {"7203.T": PILL}, "errors": {"X.T": fault}, "position": "k:0-1"})
    many = client.latest(["7203.T", "X.T"])
    assert (many.data["7203.T"].confidence, many.errors["X.T"].code) == (88, "no_pill")
    assert platform.requests[1] == ("/api/pills/latest?symbols=7203.T%2CX.T", "pil_live_x")


def test_asyncio_has_the_same(platform: Platform) -> None:
    platform.answer({"data": PILL, "position": "k:0-1"})

    async def run() -> None:
        async with AsyncClient("pil_live_x", api_url=platform.url) as client:
            assert (await client.latest("7203.T")).position == "k:0-1"

    asyncio.run(run())


def test_a_transient_failure_is_repeated(platform: Platform, client: Client) -> None:
    platform.answer(problem("overloaded", 503, retry="after"), 503)
    platform.answer("bad gateway", 502)
    platform.answer({"data": PILL, "position": "k:0-1"})
    assert client.latest().position == "k:0-1"
    assert len(platform.requests) == 3


@pytest.mark.parametrize(
    ("status", "headers", "body", "code", "requests"),
    [
        (403, {}, problem("tier_too_low", 403, retry="never"), "tier_too_low", 1),
        (429, {"retry-after": "3600"}, problem("daily_quota_exceeded", 429, retry="after"), "", 1),
        (404, {}, problem("not_found", 404, retry="never"), "endpoint_unavailable", 1),
        (404, {}, "<html>", "not_pillole", 1),
        (200, {}, "<html>", "not_pillole", 1),
        (302, {"location": "http://127.0.0.1:1/"}, "", "not_pillole", 1),
        (200, {}, {"data": 1}, "answer_malformed", 1),
    ],
)
def test_other_failures_are_raised_at_once(
    platform: Platform,
    client: Client,
    status: int,
    headers: dict[str, str],
    body: Any,
    code: str,
    requests: int,
) -> None:
    platform.answer(body, status, **headers)
    with pytest.raises(PilloleError) as caught:
        client.latest()
    assert caught.value.code == (code or "daily_quota_exceeded")
    assert len(platform.requests) == requests


def test_the_key_is_checked_before_a_request(platform: Platform) -> None:
    for key, code in ((None, "key_missing"), ("", "key_missing"), ("a b", "key_malformed")):
        with Client(key, api_url=platform.url) as client, pytest.raises(PilloleError) as caught:
            client.latest()
        assert caught.value.code == code
    assert platform.requests == []


def test_history_reads_page_by_page(platform: Platform, client: Client) -> None:
    as_of = {"position": "k:0-2"}
    next_ = "/api/pills?symbol=7203.T&page=2"
    platform.answer({"data": [PILL], "next": next_, "as_of": as_of})
    platform.answer({"data": [{**PILL, "cursor": "0-2"}], "next": None, "as_of": as_of})
    history = client.history("7203.T", datetime(2026, 11, 20, tzinfo=timezone.utc))
    assert [pill.cursor for pill in history] == ["0-1", "0-2"]
    assert history.as_of == as_of
    assert "from=2026-11-20T00%3A00%3A00.000000Z" in platform.requests[0][0]
    assert platform.requests[1][0] == next_


@pytest.mark.parametrize("engine", ["pandas", "polars", "arrow"])
def test_history_as_a_data_frame(platform: Platform, client: Client, engine: Any) -> None:
    pytest.importorskip("pyarrow" if engine == "arrow" else engine)
    for _ in range(2):
        platform.answer({"data": [PILL, {**PILL, "cursor": "0-2"}], "next": None})
    history = client.history("7203.T", "2026-11-20T00:00:00Z")
    frame: Any = history.to_df("Asia/Tokyo", engine=engine)
    assert len(frame) == 2
    first = frame["timestamp"][0]
    assert (first.as_py() if engine == "arrow" else first).isoformat() == (
        "2026-11-20T10:02:03.004000+09:00"
    )
    assert len(history.to_df(count=1, engine=engine)) == 1


@pytest.mark.parametrize("engine", ["pandas", "polars", "arrow"])
def test_a_frame_without_pills_has_the_same_types(
    platform: Platform, client: Client, engine: Any
) -> None:
    platform.answer({"data": [PILL], "next": None})
    platform.answer({"data": [], "next": None})
    history = client.history("7203.T", "2026-11-20T00:00:00Z")
    some: Any = history.to_df(engine=engine)
    none: Any = history.to_df(engine=engine)
    assert len(none) == 0
    if engine == "arrow" or engine == "polars":
        assert none.schema == some.schema
    else:
        numbers = ["timestamp", "received_at", "gross_spread_percent", "confidence", "late"]
        assert none.dtypes[numbers].equals(some.dtypes[numbers])


@pytest.mark.parametrize("face", ["plain", "asyncio"])
def test_an_answer_is_bounded_by_time_and_length(
    platform: Platform, face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> PilloleError:
        with pytest.raises(PilloleError) as caught:
            if face == "plain":
                with Client("k", api_url=platform.url) as client:
                    client.get("/api/status", attempts_max=1)
            else:

                async def run() -> None:
                    async with AsyncClient("k", api_url=platform.url) as client:
                        await client.get("/api/status", attempts_max=1)

                asyncio.run(run())
        return caught.value

    monkeypatch.setattr("pillole.rest.BODY_BYTES_MAX", 1_000)
    platform.answer({"data": "x" * 1_001})
    assert "longer than 1000 bytes" in read().message
    monkeypatch.setattr("pillole.rest.TIMEOUT_S", 0.3)
    monkeypatch.setattr("pillole.fetching.TIMEOUT_S", 0.3)
    # A part every 0.1 s: no single wait is too long.
    platform.drip_s = 0.1
    platform.answer({"data": "x" * 900})
    assert read().code == "timeout"


def test_settings_come_from_the_environment(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILLOLE_KEY", "pil_live_env")
    monkeypatch.setenv("PILLOLE_API_URL", platform.url)
    platform.answer({"data": PILL, "position": "k:0-1"})
    with Client() as client:
        client.latest()
    assert platform.requests[0][1] == "pil_live_env"


def test_the_api_names_the_address_of_streams(platform: Platform) -> None:
    platform.answer({"services": {"stream": "ws://127.0.0.1:1"}})
    with Client("k", api_url=platform.url) as client, pytest.raises(PilloleError) as caught:
        list(client.stream("A", attempts_max=1))
    assert caught.value.code == "retries_exhausted"
    assert "ws://127.0.0.1:1/api/stream" in caught.value.message
    assert platform.requests == [("/api/account", "k")]


def test_usable_says_no_when_in_doubt(platform: Platform, client: Client) -> None:
    platform.answer(VERDICT)
    usable = client.usable("7203.T")
    assert usable.usable and 4 < usable.valid_for_s <= 5
    platform.answer({**VERDICT, "usable": False, "reasons": [{"code": "pill_too_old"}]})
    assert client.usable("7203.T").reason == "pill_too_old"
    platform.answer({**VERDICT, "subject": {"symbol": "OTHER"}})
    assert client.usable("7203.T").reason == "verdict_malformed"
    platform.answer({**VERDICT, "valid_until": VERDICT["checked_at"]})
    assert client.usable("7203.T").reason == "verdict_expired"
    platform.answer(problem("overloaded", 503, retry="after"), 503)
    assert client.usable("7203.T").reason == "overloaded"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(PilloleError, match="no time zone"):
        time_text(datetime(2026, 11, 20))


def test_an_address_that_nobody_serves() -> None:
    with Client("k", api_url="http://127.0.0.1:1") as client, pytest.raises(PilloleError) as caught:
        client.get("/api/status", attempts_max=1)
    assert (caught.value.code, caught.value.retry) == ("network", "after")
    with pytest.raises(PilloleError, match="not_configured"):
        Client("k").latest()
