"""What a client is made of: key, addresses and certificates."""

from __future__ import annotations

import os
import re
import ssl
from typing import Any
from urllib.parse import urlsplit, urlunsplit

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
        api_url: str | None = None,
        stream_url: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._key = os.environ.get("PILLOLE_KEY") if key is None else key
        self._api_url = api_url or os.environ.get("PILLOLE_API_URL")
        self._stream_url = stream_url or os.environ.get("PILLOLE_STREAM_URL")
        self._ssl_context = ssl_context

    def _headers(self) -> dict[str, str]:
        key = {} if self._key is None else {"x-api-key": self._require_key()}
        return {"accept": "application/json", **key}

    def _http_options(self) -> dict[str, Any]:
        # A redirect must not carry the key to another address.
        verify = {} if self._ssl_context is None else {"verify": self._ssl_context}
        return {"timeout": TIMEOUT_S, "follow_redirects": False, **verify}

    def _require_key(self) -> str:
        key = self._key
        if not key:
            raise PilloleError("key_missing", "No key is set: pass `key` to the client.")
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            message = "The key has blanks or line breaks: pass exactly the key."
            raise PilloleError("key_malformed", message)
        return key

    def _require_stream(self) -> None:
        """Fails at once rather than in the first attempt to connect."""
        self._require_key()
        if self._stream_url:
            self._address_at(self._stream_url)
        elif not self._api_url:
            message = "Set stream_url, or api_url, from which the client reads the address of streams."
            raise PilloleError("not_configured", message)

    def _address_at(self, stream_url: str) -> Address:
        parts = urlsplit(stream_url)
        scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
        if scheme not in ("ws", "wss") or not parts.netloc:
            message = f"stream_url is no ws(s) address: {stream_url}"
            raise PilloleError("not_configured", message)
        path = STREAM_PATH if parts.path in ("", "/") else parts.path
        url = urlunsplit((scheme, parts.netloc, path, parts.query, ""))
        return Address(url, self._require_key(), self._ssl_context if scheme == "wss" else None)
