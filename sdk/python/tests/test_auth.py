"""Signatures and tokens in place of a key, against servers in this process. The signatures are
checked by a base that the tests make by themselves from the text of RFC 9421."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from websockets.asyncio.server import ServerConnection

import pillole.auth
from pillole import (
    AsyncClient,
    Auth,
    Client,
    OutgoingRequest,
    Pill,
    PilloleError,
    bearer_tokens,
    sign_requests,
)
from stream_server import Start, frame, pill

SCHEME = "aut_k3yq7v2bqm9c"
ED25519 = ed25519.Ed25519PrivateKey.generate()
P256 = ec.generate_private_key(ec.SECP256R1())
SECRET = bytes(range(32))
SECRET_TEXT = base64.b64encode(SECRET).decode()
INPUT = re.compile(
    r'sig1=(\((?:"@method" "@target-uri"|"@method" "@target-uri" "content-digest")\)'
    r';created=\d+;keyid="aut_k3yq7v2bqm9c";nonce="([^"]{24})")'
)
ANSWER = json.dumps({"id": "exp_1", "state": "failed", "problem": "export_failed"}).encode()
"""To every request: an export that failed, which ends the wait for it."""
RANGE = ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")


class Seen(NamedTuple):
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Platform:
    """Keeps what it is asked; answers 503 as often as it is told, then `ANSWER`."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.failures = 0
        platform = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                platform.seen.append(Seen(self.command, self.path, headers, body))
                is_failure = len(platform.seen) <= platform.failures
                self.send_response(503 if is_failure else 200)
                self.send_header("content-length", str(len(ANSWER)))
                self.end_headers()
                self.wfile.write(ANSWER)

            do_POST = do_DELETE = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def platform() -> Iterator[Platform]:
    platform = Platform()
    yield platform
    platform.server.shutdown()
    platform.server.server_close()


def signing() -> Auth:
    return sign_requests(SCHEME, "ed25519", private_key=ED25519)


def numbered_tokens() -> Auth:
    made = 0

    def token() -> str:
        nonlocal made
        made += 1
        return f"eyJ.{made}.x"

    return bearer_tokens(token)


def away_until(asks: int) -> tuple[Auth, list[OutgoingRequest]]:
    """Fails before the ``asks``-th call; the requests that it was asked for."""
    asked: list[OutgoingRequest] = []

    def auth(request: OutgoingRequest) -> dict[str, str]:
        asked.append(request)
        if len(asked) < asks:
            raise OSError("the issuer is away")
        return {"authorization": f"Bearer eyJ.{len(asked)}.x"}

    return auth, asked


def verify_ed25519(base: bytes, signature: bytes) -> None:
    ED25519.public_key().verify(signature, base)


def verify_p256(base: bytes, signature: bytes) -> None:
    assert len(signature) == 64
    r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
    der = utils.encode_dss_signature(r, s)
    P256.public_key().verify(der, base, ec.ECDSA(hashes.SHA256()))


def verify_hmac(base: bytes, signature: bytes) -> None:
    assert signature == hmac.new(SECRET, base, hashlib.sha256).digest()


@pytest.mark.parametrize(
    ("auth", "verify"),
    [
        (signing(), verify_ed25519),
        (sign_requests(SCHEME, "ecdsa-p256-sha256", private_key=P256), verify_p256),
        (sign_requests(SCHEME, "hmac-sha256", secret=SECRET_TEXT), verify_hmac),
    ],
    ids=["ed25519", "ecdsa-p256-sha256", "hmac-sha256"],
)
def test_the_signature_is_that_of_the_request_as_it_arrives(
    platform: Platform, auth: Auth, verify: Callable[[bytes, bytes], None]
) -> None:
    with Client(auth=auth, api_url=platform.url) as client:
        client.analytics("bars", symbol="7203.T", interval="1 m")
        # The library encodes what no address may have.
        client.get("/api/symbols?venue=東京 X")
        with pytest.raises(PilloleError, match="export_failed"):
            client.export(*RANGE, symbols=["7203.T"])
    assert [one.method for one in platform.seen] == ["GET", "GET", "POST", "DELETE"]
    for method, path, headers, body in platform.seen:
        match = INPUT.fullmatch(headers["signature-input"])
        assert match is not None
        lines = [f'"@method": {method}', f'"@target-uri": {platform.url}{path}']
        if method == "POST":
            digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
            assert headers["content-digest"] == f"sha-256=:{digest}:"
            lines.append(f'"content-digest": sha-256=:{digest}:')
        base = "\n".join([*lines, f'"@signature-params": {match[1]}']).encode()
        assert ('"content-digest"' in match[1]) == (method == "POST")
        verify(base, base64.b64decode(headers["signature"].removeprefix("sig1=:").rstrip(":")))
        assert "x-api-key" not in headers
    _, _, headers, body = platform.seen[2]
    assert headers["content-type"] == "application/json"
    assert json.loads(body)["symbols"] == ["7203.T"]


def test_each_attempt_is_signed_anew(platform: Platform) -> None:
    platform.failures = 2
    with Client(auth=signing(), api_url=platform.url) as client:
        client.account()
    inputs = [INPUT.fullmatch(one.headers["signature-input"]) for one in platform.seen]
    assert len({match and match[2] for match in inputs}) == 3
    assert all(inputs)


@pytest.mark.parametrize("is_async", [False, True])
def test_each_attempt_has_a_new_token(platform: Platform, is_async: bool) -> None:
    platform.failures = 1
    auth = numbered_tokens()

    async def run() -> None:
        async with AsyncClient(auth=auth, api_url=platform.url) as client:
            await client.account()

    if is_async:
        asyncio.run(run())
    else:
        with Client(auth=auth, api_url=platform.url) as client:
            client.account()
    sent = [one.headers["authorization"] for one in platform.seen]
    assert sent == ["Bearer eyJ.1.x", "Bearer eyJ.2.x"]


def test_asyncio_asks_in_another_thread_and_exports_prove_too(platform: Platform) -> None:
    threads: set[int] = set()

    def auth(request: OutgoingRequest) -> dict[str, str]:
        threads.add(threading.get_ident())
        return {"authorization": f"Bearer {request.method}"}

    async def run() -> None:
        async with AsyncClient(auth=auth, api_url=platform.url) as client:
            await client.account()
            with pytest.raises(PilloleError, match="export_failed"):
                await client.export(*RANGE)

    asyncio.run(run())
    assert threading.get_ident() not in threads
    sent = [one.headers["authorization"] for one in platform.seen]
    assert sent == ["Bearer GET", "Bearer POST", "Bearer DELETE"]


def test_a_token_that_cannot_be_had_is_asked_for_again(platform: Platform) -> None:
    auth, asked = away_until(3)
    with Client(auth=auth, api_url=platform.url) as client:
        client.account()
    assert (len(asked), len(platform.seen)) == (3, 1)
    auth, asked = away_until(99)
    with Client(auth=auth, api_url=platform.url) as client:
        with pytest.raises(PilloleError, match="the issuer is away") as caught:
            client.account()
        assert (caught.value.code, caught.value.retry, len(asked)) == ("auth_failed", "after", 3)
        assert isinstance(caught.value.__cause__, OSError)
        assert client.usable("7203.T").reason == "auth_failed"
    assert len(platform.seen) == 1


def test_asyncio_and_streams_wait_for_auth_only_so_long(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pillole.auth, "AUTH_MAX_S", 0.01)
    ended = threading.Event()

    def hang() -> str:
        ended.wait(60)
        return "eyJ"

    async def run() -> None:
        try:
            async with AsyncClient(auth=bearer_tokens(hang), api_url=platform.url) as client:
                with pytest.raises(PilloleError, match=r"auth_failed.*within 0\.01 s"):
                    await client.get("/api/account", attempts_max=1)
        finally:
            ended.set()

    asyncio.run(run())
    assert platform.seen == []


@pytest.mark.parametrize("value", ["eyJ\n", "é", "", None])
def test_a_header_that_cannot_be_sent_is_not_quoted(platform: Platform, value: Any) -> None:
    client = Client(auth=lambda request: {"authorization": value}, api_url=platform.url)
    with client, pytest.raises(PilloleError, match="'authorization' of `auth`") as caught:
        client.account()
    assert (caught.value.code, caught.value.retry) == ("auth_malformed", "never")
    assert not value or value not in str(caught.value)
    assert platform.seen == []


def test_a_key_or_auth_not_both(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client("pil_live_x", auth=signing(), api_url=platform.url) as client:
        for call in (client.account, client.status, lambda: client.stream("A")):
            with pytest.raises(PilloleError, match="not_configured: Set only one"):
                call()
    assert platform.seen == []
    monkeypatch.setenv("PILLOLE_KEY", "pil_live_environment")
    with Client(auth=signing(), api_url=platform.url) as client:
        client.account()
    assert "x-api-key" not in platform.seen[0].headers


class Sockets:
    """Serves streams; the handshakes, and the operation of the first frame of each."""

    def __init__(self) -> None:
        self.handshakes: list[tuple[str, Mapping[str, str]]] = []
        self.first: list[str] = []

    async def serve(self, socket: ServerConnection, number: int) -> None:
        """The first connection is closed as one whose token has ended."""
        assert socket.request is not None
        headers = {name.lower(): value for name, value in socket.request.headers.raw_items()}
        self.handshakes.append((socket.request.path, headers))
        shared = {"session": "s", "tier": "pro", "epoch": "k7f3", "heartbeat_ms": 60_000}
        await socket.send(frame("welcome", limits={"frame_in_bytes": 4096}, **shared))
        wanted = json.loads(await socket.recv())
        self.first.append(wanted["op"])
        position = {"id": "s1", "position": "k7f3:0-1"}
        recovered = True if "resume" in wanted else None
        answer = {"accepted": ["A"], "rejected": [], "recovered": recovered, "reason": None}
        await socket.send(frame("subscribed", **position, **answer))
        if recovered is None:
            await socket.send(frame("snapshot", pills=[], last=True, **position))
        await socket.send(frame("live", **position))
        if number == 1:
            await socket.close(4004)
        else:
            await socket.send(frame("pill", **pill(2)))
            await socket.wait_closed()


def test_a_stream_proves_each_connection_in_its_handshake(start: Start) -> None:
    sockets = Sockets()
    server = start(sockets.serve)
    notes: list[Any] = []
    with Client(auth=numbered_tokens(), stream_url=server.url) as client:
        stream = client.stream("A", reconnect_max_s=0.01, on_note=notes.append)
        assert any(isinstance(item, Pill) for item in stream)
    sent = [headers["authorization"] for _, headers in sockets.handshakes]
    assert sent == ["Bearer eyJ.1.x", "Bearer eyJ.2.x"]
    assert sockets.first == ["subscribe", "subscribe"]
    assert [note.code for note in notes] == ["credential_expired"]


def test_a_stream_signs_the_address_that_it_opens(start: Start) -> None:
    sockets = Sockets()
    server = start(sockets.serve)
    with Client(auth=signing(), stream_url=f"{server.url}/?desk=東京") as client:
        assert any(isinstance(item, Pill) for item in client.stream("A", reconnect_max_s=0.01))
    assert len(sockets.handshakes) == 2
    for path, headers in sockets.handshakes:
        assert path == "/api/stream?desk=%E6%9D%B1%E4%BA%AC"
        match = INPUT.fullmatch(headers["signature-input"])
        assert match is not None
        base = f'"@method": GET\n"@target-uri": {server.url}{path}\n"@signature-params": {match[1]}'
        signature = headers["signature"].removeprefix("sig1=:").rstrip(":")
        verify_ed25519(base.encode(), base64.b64decode(signature))


def test_a_stream_keeps_trying_while_no_token_can_be_had(start: Start) -> None:
    sockets = Sockets()
    server = start(sockets.serve)
    auth, asked = away_until(3)
    notes: list[Any] = []
    with Client(auth=auth, stream_url=server.url) as client:
        stream = client.stream("A", reconnect_max_s=0.01, on_note=notes.append)
        assert any(isinstance(item, Pill) for item in stream)
    assert [note.code for note in notes] == ["auth_failed", "auth_failed", "credential_expired"]
    assert sockets.handshakes[0][1]["authorization"] == "Bearer eyJ.3.x"
    assert {one.url for one in asked} == {f"{server.url}/api/stream"}


def test_a_stream_of_asyncio_ends_by_headers_that_cannot_be_sent(start: Start) -> None:
    sockets = Sockets()
    server = start(sockets.serve)

    async def run() -> None:
        auth = bearer_tokens(lambda: "eyJ\n")
        async with AsyncClient(auth=auth, stream_url=server.url) as client:
            with pytest.raises(PilloleError, match="auth_malformed"):
                async for _ in client.stream("A", reconnect_max_s=0.01, attempts_max=2):
                    pass

    asyncio.run(run())
    assert sockets.handshakes == []


def pem(key: Any, passphrase: bytes | None = None) -> str:
    encryption = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
    text: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return text.decode()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheme_id": "key_1", "private_key": ED25519}, "scheme_id"),
        ({"algorithm": "rsa-v1_5-sha256", "private_key": ED25519}, "algorithm must be"),
        ({"private_key": P256}, "not a key for ed25519"),
        ({"algorithm": "ecdsa-p256-sha256", "private_key": ED25519}, "not a key for ecdsa"),
        (
            {
                "algorithm": "ecdsa-p256-sha256",
                "private_key": ec.generate_private_key(ec.SECP384R1()),
            },
            "not a key for ecdsa",
        ),
        ({}, "not a key for ed25519"),
        ({"private_key": "MIIsecret"}, "in PEM"),
        ({"private_key": pem(ED25519, b"secret")}, "without a passphrase"),
        ({"algorithm": "hmac-sha256", "secret": "YWJj"}, "secret must"),
        ({"algorithm": "hmac-sha256", "secret": "YWJj?"}, "secret must"),
        ({"algorithm": "hmac-sha256"}, "secret must"),
    ],
)
def test_wrong_keys_are_refused_and_not_quoted(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PilloleError, match=message) as caught:
        sign_requests(**{"scheme_id": SCHEME, "algorithm": "ed25519", **options})
    assert caught.value.code == "auth_malformed"
    assert not re.search("MIIsecret|YWJj|BEGIN", str(caught.value))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("key", [pem(ED25519), pem(ED25519).encode()], ids=["text", "bytes"])
def test_keys_may_be_pem(key: str | bytes) -> None:
    auth = sign_requests(SCHEME, "ed25519", private_key=key)
    assert "signature" in auth(OutgoingRequest("GET", "https://a.example/"))


def test_only_hmac_works_without_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(PilloleError, match="the extra `signing` brings") as caught:
        sign_requests(SCHEME, "ed25519", private_key="MIIsecret")
    assert caught.value.code == "not_configured"
    auth = sign_requests(SCHEME, "hmac-sha256", secret=SECRET_TEXT)
    assert "signature" in auth(OutgoingRequest("GET", "https://a.example/"))
