"""What a client proves its requests with: an API key, or signatures or tokens of an account's own
authentication schemes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx

from .errors import PilloleError

AUTH_MAX_S = 10.0
"""One call of ``auth`` by asyncio and by streams. Plain calls wait as long as ``auth`` takes."""


@dataclass(frozen=True)
class OutgoingRequest:
    """A request that is about to be sent."""

    method: str
    url: str
    """Complete, with its query; ``wss://…`` for a socket."""
    body: bytes | None = None
    """Exactly the bytes that are sent; None if the request has no body."""


Auth = Callable[[OutgoingRequest], Mapping[str, str]]
"""Makes the headers that prove who sends a request. The client calls it before each attempt and
each connection, since a signature is accepted once and a token ends; from several threads, by
asyncio and by streams never in that of the event loop. It should have time-outs of its own."""


def bearer_tokens(token: Callable[[], str]) -> Auth:
    """Proves requests by tokens of your own issuer. ``token`` returns a JWT that is still valid for
    some seconds, e.g. from your issuer or a cache."""
    return lambda request: {"authorization": f"Bearer {token()}"}


@dataclass(frozen=True)
class Credentials:
    """A key, or ``auth``, or neither for calls that need none."""

    key: str | None = field(default=None, repr=False)
    auth: Auth | None = None

    def headers(self, method: str, url: str, body: bytes | None = None) -> Mapping[str, str]:
        """The headers that prove one request. Raises PilloleError: ``auth_failed`` if ``auth``
        raises, after which the same request may succeed later; ``auth_malformed``."""
        if self.auth is None:
            return {} if self.key is None else {"x-api-key": self.key}
        # The address as httpx writes it into the request.
        request = OutgoingRequest(method, str(httpx.URL(url)), body)
        try:
            headers = dict(self.auth(request))
        except PilloleError:
            raise
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise PilloleError("auth_failed", reason, retry="after") from error
        for name, value in headers.items():
            # The error of the library would quote the value.
            if not isinstance(value, str) or not re.fullmatch(r"[\x20-\x7e]+", value):
                message = f"The header {name!r} of `auth` must be text in one line of ASCII."
                raise PilloleError("auth_malformed", message)
        return headers

    async def headers_async(self, method: str, url: str) -> Mapping[str, str]:
        """The same for asyncio: ``auth`` may wait for the network, so it has a thread."""
        if self.auth is None:
            return self.headers(method, url)
        making = asyncio.to_thread(self.headers, method, url)
        try:
            return await asyncio.wait_for(making, AUTH_MAX_S)
        except (TimeoutError, asyncio.TimeoutError) as error:
            message = f"`auth` returned no headers within {AUTH_MAX_S:g} s."
            raise PilloleError("auth_failed", message, retry="after") from error
