"""Signs outgoing webhooks as Standard Webhooks say (docs/rules.md, rule 18): https://www.standardwebhooks.com."""

import base64
import binascii
import hmac
from collections.abc import Iterable
from datetime import datetime

SECRET_PREFIX = "whsec_"  # noqa: S105 (the standard's prefix of every secret)
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64


def secret_of(key: bytes) -> str:
    """Return a key as its owner is shown it. Raises ValueError unless it has 24 to 64 bytes."""
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(f"a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")
    return SECRET_PREFIX + base64.b64encode(key).decode()


def key_of(secret: str) -> bytes:
    """Return the key of a secret; raises ValueError for what is none, without quoting it."""
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("the secret is not base64") from None


def signature(secret: str, message_id: str, seconds: int, body: bytes) -> str:
    """Return one signature, `v1,` and base64. seconds: since 1970. Raises ValueError."""
    signed = f"{message_id}.{seconds}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key_of(secret), signed, "sha256")).decode()


def signed_headers(secrets: Iterable[str], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Return the headers that prove a message. Its time is that of the attempt, its id never changes.

    secrets: those that are valid, the newest first; while a secret is rotated each of the two signs.
    """
    seconds = int(at.timestamp())
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(signature(each, message_id, seconds, body) for each in secrets),
    }
