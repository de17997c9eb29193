"""The body of a request as the gateway hands it over, and what a sender has compressed."""

import base64
import zlib
from collections.abc import Mapping
from typing import Any

from ingest.web.caller import ApiError

BODY_BYTES_MAX = 1_000_000
# Of a webhook: what Lambda hands over in one request. Meta sends up to 3 MB, and repeats what is refused.
WEBHOOK_BYTES_MAX = 6 * 1024 * 1024
IDENTITY = ("", "identity")
# How zlib reads what each coding names. Some senders of `deflate` leave out the header of RFC 1950.
ZLIB, RAW = zlib.MAX_WBITS, -zlib.MAX_WBITS
MEMBERS_MAX = 100  # of gzip; each costs a copy of what follows it
WINDOWS = {"gzip": (ZLIB | 16,), "x-gzip": (ZLIB | 16,), "deflate": (ZLIB, RAW)}


def read_body(event: Mapping[str, Any]) -> bytes:
    """Return the bytes that a request has sent; raises 400."""
    raw = event.get("body") or ""
    try:
        is_base64 = event.get("isBase64Encoded")
        return base64.b64decode(raw, validate=True) if is_base64 else raw.encode(errors="surrogatepass")
    except ValueError:
        raise ApiError(400, "invalid_json", "the body is not what the gateway says it is") from None


def coding_of(event: Mapping[str, Any]) -> str:
    """Return how the body is compressed, in lower case, such as `gzip`; "" if it is not."""
    headers = {name.lower(): str(value) for name, value in (event.get("headers") or {}).items()}
    coding = headers.get("content-encoding", "").strip().lower()
    return "" if coding in IDENTITY else coding


def read_plain_body(event: Mapping[str, Any], bytes_max: int = BODY_BYTES_MAX) -> bytes:
    """Return the body of a request, decompressed; raises 400, 413 and 415.

    bytes_max: of the sent bytes, and of the decompressed ones.
    """
    data, coding = _checked(read_body(event), bytes_max), coding_of(event)
    if not coding:
        return data
    if coding not in WINDOWS:
        raise _unsupported(f"Content-Encoding {coding[:40]} is not taken: gzip and deflate are")
    for window in WINDOWS[coding]:
        plain = _decompressed(data, window, bytes_max)
        if plain is not None:
            return plain
    if not event.get("isBase64Encoded"):
        # A gateway hands bodies of these types over as text, and so destroys what is compressed.
        reason = (
            "a compressed body is not taken as JSON or text: send Content-Type application/gzip, or plain"
        )
        raise _unsupported(reason)
    raise ApiError(400, "invalid_json", f"the body is not {coding}, as Content-Encoding says, or is cut off")


def _decompressed(data: bytes, window: int, bytes_max: int) -> bytes | None:
    """Return what data was before it was compressed; None if it is not compressed so. Raises 413.

    Gzip may have several members, one behind the other, and zeros at its end (RFC 1952, 2.2; `gzip -c a b`).
    """
    plain = b""
    for _ in range(MEMBERS_MAX):
        reader = zlib.decompressobj(window)
        try:
            plain += reader.decompress(data, bytes_max + 1 - len(plain))
        except zlib.error:
            return None
        _checked(plain, bytes_max)
        data = reader.unused_data
        if not reader.eof or (data and window not in WINDOWS["gzip"]):
            return None
        data = data.lstrip(b"\0")
        if not data:
            return plain
    return None


def _checked(data: bytes, bytes_max: int) -> bytes:
    if len(data) > bytes_max:
        raise ApiError(413, "too_large", f"the body is over {bytes_max} bytes")
    return data


def _unsupported(reason: str) -> ApiError:
    return ApiError(415, "unsupported_media_type", reason)
