"""Back-off with full jitter (Brooker, "Exponential Backoff And Jitter", AWS 2015)."""

from __future__ import annotations

import random


def jitter_s(attempt: int, first_s: float, max_s: float) -> float:
    """Seconds drawn from 0 … min(max, first * 2^attempt); attempts count from 0."""
    return random.random() * min(max_s, first_s * 2.0 ** min(attempt, 30))
