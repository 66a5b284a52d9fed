"""What a client is made of: credentials, addresses and certificates."""

from __future__ import annotations

import os
import re
import ssl
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from .auth import Auth, Credentials
from .errors import PilloleError
from .rest import TIMEOUT_S
from .stream.connection import Address

STREAM_PATH = "/api/stream"


class Settings:
    """Settings as given, else from the environment; checked when they are needed."""

    def __init__(
        self,
        key: str | None = None,
        *,
        auth: Auth | None = None,
        api_url: str | None = None,
        stream_url: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        is_unproved = key is None and auth is None
        self._key = os.environ.get("PILLOLE_KEY") if is_unproved else key
        self._auth = auth
        self._api_url = api_url or os.environ.get("PILLOLE_API_URL")
        self._stream_url = stream_url or os.environ.get("PILLOLE_STREAM_URL")
        self._ssl_context = ssl_context

    def _credentials(self) -> Credentials:
        """Of a call that may need none."""
        is_unproved = self._key is None and self._auth is None
        return Credentials() if is_unproved else self._require_credentials()

    def _http_options(self) -> dict[str, Any]:
        # A redirect must not carry the credential to another address.
        verify = {} if self._ssl_context is None else {"verify": self._ssl_context}
        return {"timeout": TIMEOUT_S, "follow_redirects": False, **verify}

    def _require_credentials(self) -> Credentials:
        key = self._key
        if not key:
            if self._auth is not None:
                return Credentials(auth=self._auth)
            message = "No key is set: pass `key` or `auth` to the client."
            raise PilloleError("key_missing", message)
        if self._auth is not None:
            raise PilloleError("not_configured", "Set only one of `key` and `auth`.")
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            message = "The key has blanks or line breaks: pass exactly the key."
            raise PilloleError("key_malformed", message)
        return Credentials(key)

    def _require_stream(self) -> None:
        """Fails at once rather than in the first attempt to connect."""
        self._require_credentials()
        if self._stream_url:
            self._address_at(self._stream_url)
        elif not self._api_url:
            message = "Set stream_url, or api_url, where the client reads the address of streams."
            raise PilloleError("not_configured", message)

    def _address_at(self, stream_url: str) -> Address:
        parts = urlsplit(stream_url)
        scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
        if scheme not in ("ws", "wss") or not parts.netloc:
            message = f"stream_url is no ws(s) address: {stream_url}"
            raise PilloleError("not_configured", message)
        path = STREAM_PATH if parts.path in ("", "/") else parts.path
        try:
            url = str(httpx.URL(urlunsplit((scheme, parts.netloc, path, parts.query, ""))))
        except httpx.InvalidURL as error:
            raise PilloleError("not_configured", f"stream_url: {error}") from error
        context = self._ssl_context if scheme == "wss" else None
        return Address(url, self._require_credentials(), context)
