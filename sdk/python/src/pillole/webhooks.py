"""Verifies webhook deliveries by Standard Webhooks 1.0 (HMAC-SHA256 over id, time and body)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import WebhookVerificationError

TOLERANCE_S = 300
"""As in the reference libraries: a longer tolerance allows replays for longer."""
_SECRET_HOW = "Use the secret of the endpoint exactly as it was shown: whsec_ followed by base64."


def verify_webhook(
    body: bytes | str,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> dict[str, Any]:
    """The event of a delivery. Raises WebhookVerificationError: answer 401.

    ``body`` is the raw body, before anything parses it; ``secrets`` are several during a rotation.
    """
    keys = [_secret_bytes(one) for one in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise WebhookVerificationError("secret_malformed", f"No secret is set. {_SECRET_HOW}")
    raw = body.encode() if isinstance(body, str) else bytes(body)
    message_id = _header(headers, "webhook-id")
    timestamp = _header(headers, "webhook-timestamp")
    signatures = _header(headers, "webhook-signature")
    _check_time(timestamp, tolerance_s, time.time() if now is None else now)
    presented = [one[3:] for one in signatures.split(" ") if one.startswith("v1,")]
    content = f"{message_id}.{timestamp}.".encode() + raw
    is_signed = False
    # Every key is compared, even after a match, so that the time reveals nothing about them.
    for key in keys:
        expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
        for signature in presented:
            is_signed = hmac.compare_digest(signature.encode(), expected) or is_signed
    if not is_signed:
        raise WebhookVerificationError(
            "signature_mismatch",
            "No signature matches: compare your secret with that of the endpoint, and verify the "
            "raw body, byte for byte, before anything parses it.",
        )
    return _event_of(raw)


def challenge_answer(event: Mapping[str, Any]) -> str | None:
    """The body with which to answer ``endpoint.test``; None: any 2xx answer will do."""
    if event["type"] != "endpoint.test":
        return None
    return str(event["data"]["challenge"])


def _secret_bytes(secret: str) -> bytes:
    text = secret.strip().removeprefix("whsec_").rstrip("=")
    if re.fullmatch(r"[A-Za-z0-9+/]+", text) and len(text) % 4 != 1:
        try:
            key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except binascii.Error:
            key = b""
        # By Standard Webhooks.
        if 24 <= len(key) <= 64:
            return key
    raise WebhookVerificationError(
        "secret_malformed", f"This is not a webhook secret. {_SECRET_HOW}"
    )


def _header(headers: Mapping[str, str], name: str) -> str:
    for given, value in headers.items():
        if given.lower() == name and value:
            return value
    raise WebhookVerificationError(
        "header_missing", f"The header {name} is missing: the request is no delivery of pillole."
    )


def _check_time(timestamp: str, tolerance_s: float, now: float) -> None:
    if not re.fullmatch(r"\d{1,12}", timestamp, re.ASCII):
        raise WebhookVerificationError(
            "timestamp_malformed", "webhook-timestamp is no number of seconds."
        )
    difference = now - int(timestamp)
    if difference > tolerance_s:
        raise WebhookVerificationError(
            "too_old", f"The message is {difference:.0f} s old: a replay, or your clock is wrong."
        )
    if difference < -tolerance_s:
        raise WebhookVerificationError(
            "too_new", f"The message is {-difference:.0f} s in the future: set your clock."
        )


def _event_of(raw: bytes) -> dict[str, Any]:
    try:
        event = json.loads(raw.decode())
    except ValueError:
        event = None
    is_event = (
        isinstance(event, dict)
        and isinstance(event.get("type"), str)
        and isinstance(event.get("timestamp"), str)
        and isinstance(event.get("data"), dict)
    )
    if not is_event:
        raise WebhookVerificationError(
            "body_malformed",
            "The signature is valid, but the body is no event. Does another service use this "
            "secret?",
        )
    return dict(event)
