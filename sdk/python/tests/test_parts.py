"""Parts without a server: positions, files, webhooks, the queue."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pillole import (
    Pill,
    PilloleError,
    PositionFile,
    Saved,
    WebhookVerificationError,
    challenge_answer,
    verify_webhook,
)
from pillole.stream.item_queue import ItemQueue
from pillole.stream.position import PositionTracker, parse_position
from pillole.stream.subscription import subscription_of

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def pill(cursor: str, symbol: str = "A", **more: Any) -> Pill:
    return Pill(cursor, cursor, "t", symbol, 1.0, "open", 90.0, "r", **more)


def test_positions_only_grow() -> None:
    tracker = PositionTracker("k7f3:1-5,0-9")
    tracker.advance((0, 4))
    tracker.advance((2, 1))
    assert tracker.text == "k7f3:0-9,1-5,2-1"
    other = parse_position("k8aa:0-1")
    assert other is not None
    tracker.raise_to(other)
    assert tracker.text == "k8aa:0-1"
    for text in ("", "k7f3", "K7F3:0-1", "k7f3:0-1,", "k7f3:0-١", None):
        assert parse_position(text) is None


def test_a_position_file_is_whole_or_raises(tmp_path: Path) -> None:
    file = PositionFile(tmp_path / "position")
    assert file.load() is None
    file.save(None)
    assert file.load() is None
    file.save("k7f3:0-9", "120")
    assert file.load() == Saved("k7f3:0-9", "120")
    text = (tmp_path / "position").read_text()
    for broken in (text.replace("0-9", "0-8"), text[:20], "", "{}\n\n"):
        (tmp_path / "position").write_text(broken)
        with pytest.raises(PilloleError) as caught:
            file.load()
        assert caught.value.code == "position_file_invalid"
    # A kill leaves the file beside; it hides nothing, and the next save takes its place.
    (tmp_path / "position").write_text(text)
    (tmp_path / ".position.new").write_text(text[:9])
    assert file.load() == Saved("k7f3:0-9", "120")
    file.save("k7f3:0-10")
    assert file.load() == Saved("k7f3:0-10")
    assert [one.name for one in tmp_path.iterdir()] == ["position"]


def test_the_queue_leads_to_positions() -> None:
    queue = ItemQueue("k:0-1", conflate=False, items_max=2, age_max_s=60)
    queue.put(pill("0-2"), (0, 2))
    mark = parse_position("k:0-5,1-7")
    assert mark is not None
    queue.mark(mark)
    assert (queue.position, queue.has_room()) == ("k:0-1", True)
    queue.put(pill("0-6"), (0, 6))
    assert not queue.has_room()
    queue.take()
    assert (queue.position, queue.has_room()) == ("k:0-5,1-7", True)
    queue.end(None)
    queue.put(pill("0-8"), (0, 8))
    assert queue.take() is not None
    assert queue.take() is None
    assert queue.position == "k:0-6,1-7"


def test_the_queue_is_bounded_by_age() -> None:
    queue = ItemQueue(None, conflate=False, items_max=1_000, age_max_s=0)
    assert queue.has_room()
    queue.put(pill("0-2"), None)
    assert not queue.has_room()


def test_mode_latest_keeps_the_newest_of_each_symbol() -> None:
    queue = ItemQueue(None, conflate=True, items_max=10, age_max_s=60)
    for item in (pill("0-1"), pill("0-2", "B"), pill("0-3", skipped=2), pill("0-4", late=True)):
        queue.put(item, None)
    first, second = queue.take(), queue.take()
    assert isinstance(first, Pill) and isinstance(second, Pill)
    assert (first.cursor, first.skipped, second.cursor) == ("0-3", 4, "0-2")
    assert queue.take() is None


def test_a_subscription_fits_its_frames() -> None:
    subscription = subscription_of([f"S{n}.T" for n in range(1_000)], "all", None, True, False)
    frames = subscription.frames("k7f3:0-1", 4_096)
    assert all(len(msgspec.json.encode(frame)) <= 4_096 for frame in frames)
    assert [one for frame in frames for one in frame["symbols"]] == list(subscription.symbols)
    with pytest.raises(PilloleError, match="no_symbols"):
        subscription_of([], "all", None, True, False)


def signed(body: str, at: int = 1_763_600_000, secret: str = SECRET) -> dict[str, str]:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"msg_1.{at}.{body}".encode(), hashlib.sha256).digest()
    signature = f"v1,bm90aGluZw== v1,{base64.b64encode(mac).decode()}"
    return {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": signature,
    }


def test_a_delivery_is_verified() -> None:
    body = json.dumps(
        {"type": "endpoint.test", "timestamp": "2026-11-20T01:02:03Z", "data": {"challenge": "c"}}
    )
    event = verify_webhook(body, signed(body), [SECRET], now=1_763_600_100)
    assert challenge_answer(event) == "c"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"body": '{"type": "pill"}'}, "signature_mismatch"),
        ({"now": 1_763_600_301}, "too_old"),
        ({"now": 1_763_599_699}, "too_new"),
        ({"headers": {}}, "header_missing"),
        ({"secrets": "whsec_short"}, "secret_malformed"),
        ({"secrets": []}, "secret_malformed"),
    ],
)
def test_other_deliveries_are_refused(change: dict[str, Any], code: str) -> None:
    body = '{"type":"pill","timestamp":"t","data":{}}'
    given = {"body": body, "headers": signed(body), "secrets": SECRET, "now": 1_763_600_000}
    with pytest.raises(WebhookVerificationError) as caught:
        verify_webhook(**{**given, **change})
    assert caught.value.code == code


def test_a_signed_body_that_is_no_event_is_refused() -> None:
    with pytest.raises(WebhookVerificationError, match="no event"):
        verify_webhook("[]", signed("[]"), SECRET, now=1_763_600_000)
