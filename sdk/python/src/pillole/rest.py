"""GET requests with their repeats, without I/O, which the two clients do."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import msgspec

from .errors import PilloleError, Retry
from .retry import jitter_s

TIMEOUT_S = 10.0
"""One attempt, from the request to the last byte of the answer. Plain code looks at the clock after
each part of the answer, so that an attempt may take twice as long; each part may take as long."""
BODY_BYTES_MAX = 64 * 1024 * 1024
"""A longer answer is refused; a page of history has 2 MB."""
ATTEMPTS_MAX = 3
BACKOFF_FIRST_S = 0.2
BACKOFF_MAX_S = 5.0
RETRY_AFTER_MAX_S = 10.0
"""A longer ``Retry-After`` (of a daily quota, say) is raised instead of waited for."""

TRANSIENT = frozenset({408, 429, 502, 503, 504})
"""Statuses of proxies on the way, which send no problem document."""


ACCEPT = {"accept": "application/json"}


@dataclass(frozen=True)
class Send:
    """Send a GET request, proved anew; the answer is an `Outcome`."""

    url: str


@dataclass(frozen=True)
class Answer:
    """An answer, read to its end."""

    status: int
    headers: httpx.Headers
    body: bytes


@dataclass(frozen=True)
class Wait:
    """Wait before the next step."""

    seconds: float


Outcome = Answer | httpx.HTTPError | PilloleError
"""Of one attempt; a `PilloleError` if no proof could be made, or the answer is too long."""
Steps = Generator[Send | Wait, Outcome | None, bytes]


def get_steps(api_url: str | None, path: str, attempts_max: int = ATTEMPTS_MAX) -> Steps:
    """Steps of one GET with its repeats; returns the body. Raises PilloleError."""
    url = address_of(api_url, path)
    attempt = 0
    while True:
        attempt += 1
        try:
            return read_answer(url, (yield Send(url)))
        except PilloleError as error:
            delay_s = repeat_after_s(error, attempt)
            if attempt >= attempts_max or delay_s is None:
                raise
        yield Wait(delay_s)


def address_of(api_url: str | None, path: str) -> str:
    """The address of a path on the API's own origin. Raises PilloleError ``not_configured``."""
    if not api_url:
        raise PilloleError("not_configured", "api_url is not set.")
    base = urlsplit(api_url)
    # An address in a frame must not carry the credential to another origin.
    if base.scheme not in ("http", "https") or not base.netloc:
        raise PilloleError("not_configured", f"api_url is no http(s) address: {api_url}")
    if not path.startswith("/") or path.startswith("//"):
        raise PilloleError("not_configured", f"{path} is not a path of the API.")
    return f"{base.scheme}://{base.netloc}{path}"


def path_with(path: str, query: Mapping[str, Any]) -> str:
    """A path with the parameters that are not None."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(given)}" if given else path


def next_path(next_: str | None, path: str) -> str | None:
    """The path after the one at ``path``: ``next`` is an address or a value for ``page``."""
    if next_ is None or next_.startswith("/"):
        return next_
    parts = urlsplit(path)
    query = [one for one in parts.query.split("&") if one and not one.startswith("page=")]
    return f"{parts.path}?{'&'.join([*query, urlencode({'page': next_})])}"


def read_answer(url: str, answer: Outcome | None) -> bytes:
    """The body of a 2xx answer with JSON. Raises PilloleError for any other outcome."""
    if isinstance(answer, PilloleError):
        raise answer
    if answer is None or isinstance(answer, Exception):
        raise _transport_error(url, answer)
    body, status = answer.body, answer.status
    if 200 <= status < 300:
        if body.lstrip()[:1] not in (b"{", b"["):
            raise _not_pillole(url, f"HTTP {status} is not JSON", status)
        return body
    problem = _problem_of(body)
    if problem is None and status < 500 and status not in TRANSIENT:
        raise _not_pillole(url, f"HTTP {status} is not a problem document", status)
    retry: Retry = "after" if status in TRANSIENT else "never"
    if problem is not None and problem.get("retry") in ("never", "after", "same_id", "check"):
        retry = problem["retry"]
    code = str(problem["code"]) if problem is not None else f"http_{status}"
    if code == "not_found":
        code = "endpoint_unavailable"
    raise PilloleError(
        code,
        _describe(problem) if problem is not None else f"HTTP {status}",
        status=status,
        retry=retry,
        retry_after_s=retry_after_s(answer.headers.get("retry-after"), problem),
        problem=problem,
    )


def repeat_after_s(error: PilloleError, attempt: int) -> float | None:
    """Seconds until the next attempt; None if another attempt would not help."""
    if error.retry != "after":
        return None
    server_s = error.retry_after_s or 0.0
    if server_s > RETRY_AFTER_MAX_S:
        return None
    return server_s + jitter_s(attempt - 1, BACKOFF_FIRST_S, BACKOFF_MAX_S)


class BodyReader:
    """Collects the parts of an answer within the bounds of time and length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._bytes = 0
        self._until = time.monotonic() + TIMEOUT_S

    def add(self, part: bytes) -> None:
        """Raises httpx.ReadTimeout, and PilloleError ``answer_malformed`` beyond the length."""
        self._parts.append(part)
        self._bytes += len(part)
        if self._bytes > BODY_BYTES_MAX:
            message = f"The answer is longer than {BODY_BYTES_MAX} bytes."
            raise PilloleError("answer_malformed", message)
        if time.monotonic() > self._until:
            raise httpx.ReadTimeout(f"The answer took longer than {TIMEOUT_S:g} s.")

    def answer_of(self, response: httpx.Response) -> Answer:
        """The whole answer."""
        return Answer(response.status_code, response.headers, b"".join(self._parts))


def decode(body: bytes, type_: Any) -> Any:
    """The body as a type. Raises PilloleError ``answer_malformed``."""
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.DecodeError as error:
        raise PilloleError("answer_malformed", f"The answer cannot be read: {error}") from error


def _transport_error(url: str, cause: httpx.HTTPError | None) -> PilloleError:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    if isinstance(cause, httpx.TimeoutException):
        message = f"{parts.path} did not answer within {TIMEOUT_S:g} s."
        return PilloleError("timeout", message, retry="after")
    if isinstance(cause, httpx.RemoteProtocolError) and "disconnected" not in str(cause):
        return _not_pillole(url, f"it does not speak {parts.scheme}://")
    return PilloleError("network", f"{origin} cannot be reached: {cause}", retry="after")


def _not_pillole(url: str, what: str, status: int | None = None) -> PilloleError:
    parts = urlsplit(url)
    message = (
        f"{parts.scheme}://{parts.netloc} is not an API of pillole: {what}. Check the address and "
        "its port; the API has port 8080 by default."
    )
    return PilloleError("not_pillole", message, status=status)


def _problem_of(body: bytes) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) and "code" in value and "title" in value else None


def _describe(problem: Mapping[str, Any]) -> str:
    errors = problem.get("errors")
    faults = [one.get("detail") for one in errors if isinstance(one, dict)] if errors else []
    parts = [f"{problem['title']}.", problem.get("detail"), *faults]
    return " ".join(str(part) for part in parts if part)


def retry_after_s(header: str | None, problem: Mapping[str, Any] | None) -> float | None:
    """Seconds, by the header (a number or a date: RFC 9110, 10.2.3), else by the problem."""
    if header is not None and re.fullmatch(r"\d+", header):
        return float(header)
    if header is not None:
        try:
            date = email.utils.parsedate_to_datetime(header)
        except ValueError:
            pass
        else:
            return max(0.0, date.timestamp() - time.time())
    seconds = (problem or {}).get("retry_after_s")
    return float(seconds) if isinstance(seconds, int | float) else None
