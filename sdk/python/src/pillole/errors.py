"""The errors of the client."""

from __future__ import annotations

from typing import Any, Literal

Retry = Literal["never", "after", "same_id", "check"]
"""What may be done: nothing; the same again; the same with the same id; look first."""


class PilloleError(Exception):
    """The only error of REST calls and streams.

    ``code`` is one of the platform's (``key_invalid``, ``daily_quota_exceeded``, …) or one of the
    client's own: ``network``, ``timeout``, ``not_pillole`` (another kind of server answers),
    ``answer_malformed``, ``key_missing``, ``key_malformed``, ``auth_failed`` (no signature or token
    could be made), ``auth_malformed``, ``not_configured``, ``no_symbols``,
    ``endpoint_unavailable``, ``history_incomplete``, ``gap_too_long``, ``connection_lost``,
    ``retries_exhausted``, ``position_file_invalid``.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        retry: Retry = "never",
        retry_after_s: float | None = None,
        problem: dict[str, Any] | None = None,
        position: str | None = None,
        close_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        """HTTP status; None if there was no answer."""
        self.retry: Retry = retry
        self.retry_after_s = retry_after_s
        """How long to wait, if the server said so."""
        self.problem = problem
        """The problem document of the platform (RFC 9457), unchanged."""
        self.position = position
        """Position from which a stream that ended can resume."""
        self.close_code = close_code
        """WebSocket close code, of errors that end a connection."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def request_id(self) -> str | None:
        """Id of the request, for support."""
        value = (self.problem or {}).get("request_id")
        return value if isinstance(value, str) else None


class WebhookVerificationError(Exception):
    """Why a delivery cannot be trusted; answer it with 401. The message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
