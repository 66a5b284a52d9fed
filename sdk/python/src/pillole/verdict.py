"""Whether a verdict allows to act now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .errors import PilloleError
from .models import Usable


def judge(symbol: str, verdict: Mapping[str, Any], took_s: float) -> Usable:
    """Whether a verdict allows to act, with the time for which it holds from now on."""
    subject = verdict.get("subject")
    if not isinstance(subject, dict) or subject.get("symbol") != symbol:
        return Usable(False, "verdict_malformed", 0.0)
    full = dict(verdict)
    if verdict.get("usable") is not True or verdict.get("verdict") != "verified":
        reasons = verdict.get("reasons") or [{}]
        reason = reasons[0].get("code") or verdict.get("verdict") or "unknown"
        return Usable(False, str(reason), 0.0, full)
    # Both times are the server's, so that a wrong local clock does not matter.
    try:
        ends, asked = (
            datetime.fromisoformat(str(verdict[name]).replace("Z", "+00:00"))
            for name in ("valid_until", "checked_at")
        )
    except (KeyError, ValueError):
        return Usable(False, "verdict_malformed", 0.0, full)
    valid_s = (ends - asked).total_seconds() - took_s
    if valid_s <= 0:
        return Usable(False, "verdict_expired", 0.0, full)
    return Usable(True, "verified", valid_s, full)


def refusal(error: PilloleError) -> Usable:
    """No verdict: no."""
    missing = error.code == "endpoint_unavailable"
    return Usable(False, "verify_unavailable" if missing else error.code, 0.0)
