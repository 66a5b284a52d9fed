"""Signed requests: HTTP message signatures, RFC 9421."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, overload

from .auth import Auth, OutgoingRequest
from .errors import PilloleError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    PrivateKey = str | bytes | Ed25519PrivateKey | EllipticCurvePrivateKey

SECRET_BYTES = 32
"""Of schemes with HMAC; the platform makes them."""
NONCE_BYTES = 18
P256_BYTES = 32
"""Of each of the two numbers of a signature."""

Sign = Callable[[bytes], bytes]


@overload
def sign_requests(
    scheme_id: str,
    algorithm: Literal["ed25519", "ecdsa-p256-sha256"],
    *,
    private_key: PrivateKey,
) -> Auth: ...
@overload
def sign_requests(scheme_id: str, algorithm: Literal["hmac-sha256"], *, secret: str) -> Auth: ...
def sign_requests(
    scheme_id: str,
    algorithm: str,
    *,
    private_key: PrivateKey | None = None,
    secret: str | None = None,
) -> Auth:
    """Signs each request as the platform demands: method, target, digest of a body, the time, the
    scheme and a new nonce.

    ``scheme_id``: id of the scheme, ``aut_…``. ``private_key``: in PEM, or a key of cryptography,
    which the extra ``signing`` brings. ``secret``: in base64, as the platform showed it once.
    Raises PilloleError ``auth_malformed`` if the key does not fit the algorithm, and
    ``not_configured`` if cryptography is missing.
    """
    if not re.fullmatch(r"aut_[0-9a-z]{12}", scheme_id):
        message = "scheme_id must be the id of an authentication scheme, aut_ and 12 characters."
        raise PilloleError("auth_malformed", message)
    if algorithm == "hmac-sha256":
        sign = _hmac_signer(secret)
    elif algorithm in ("ed25519", "ecdsa-p256-sha256"):
        sign = _key_signer(algorithm, private_key)
    else:
        message = "algorithm must be ed25519, ecdsa-p256-sha256 or hmac-sha256."
        raise PilloleError("auth_malformed", message)
    return lambda request: _signed(request, scheme_id, sign)


def _signed(request: OutgoingRequest, scheme_id: str, sign: Sign) -> dict[str, str]:
    """The headers of one request. The base is that of RFC 9421, section 2.5."""
    covered = {"@method": request.method, "@target-uri": request.url}
    headers: dict[str, str] = {}
    if request.body is not None:
        headers["content-digest"] = f"sha-256=:{_text(hashlib.sha256(request.body).digest())}:"
    covered |= headers
    names = " ".join(f'"{name}"' for name in covered)
    nonce = _text(secrets.token_bytes(NONCE_BYTES))
    parameters = f'({names});created={int(time.time())};keyid="{scheme_id}";nonce="{nonce}"'
    lines = [f'"{name}": {value}' for name, value in covered.items()]
    base = "\n".join([*lines, f'"@signature-params": {parameters}'])
    return {
        **headers,
        "signature-input": f"sig1={parameters}",
        "signature": f"sig1=:{_text(sign(base.encode()))}:",
    }


def _hmac_signer(secret: str | None) -> Sign:
    try:
        key = base64.b64decode(secret or "", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != SECRET_BYTES:
        message = "secret must be the secret of the scheme, exactly as it was shown."
        raise PilloleError("auth_malformed", message)
    return lambda base: hmac.digest(key, base, "sha256")


def _key_signer(algorithm: str, private_key: PrivateKey | None) -> Sign:
    try:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
    except ImportError as error:
        message = f"Signing with {algorithm} needs cryptography, which the extra `signing` brings."
        raise PilloleError("not_configured", message) from error
    key = _read_key(private_key)
    if algorithm == "ed25519":
        if isinstance(key, ed25519.Ed25519PrivateKey):
            return key.sign
    elif isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        curve_key = key

        def sign(base: bytes) -> bytes:
            # RFC 9421, section 3.3.4: the signature is r and s, 32 bytes each.
            pair = utils.decode_dss_signature(curve_key.sign(base, ec.ECDSA(hashes.SHA256())))
            return b"".join(number.to_bytes(P256_BYTES, "big") for number in pair)

        return sign
    raise PilloleError("auth_malformed", f"private_key is not a key for {algorithm}.")


def _read_key(key: PrivateKey | None) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if not isinstance(key, str | bytes):
        return key
    try:
        return load_pem_private_key(key.encode() if isinstance(key, str) else key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The error of the parser might quote the key.
        message = "private_key must be a private key in PEM, without a passphrase."
        raise PilloleError("auth_malformed", message) from None


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
