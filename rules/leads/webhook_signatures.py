"""How vendors sign the webhooks that they send.

A source names its `Signature`, by which a request is read and checked here. A signature is made over the raw
body: JSON that was parsed and written again has other bytes. Some vendors sign a timestamp or the delivery's
id along with it. HMAC is checked here. ECDSA needs a library, so ingest/leads/hooks.py checks it.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum

AGE_SECONDS_MAX = 300  # a signed request that is older could be a copy that somebody sends again
# A sender that rotates its secrets signs with two of them for a while. Many would only cost us CPU.
SIGNATURES_MAX = 5
TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
# An id is joined to what follows by a dot. With a dot in it, one signature would fit several messages.
DELIVERY_ID = re.compile(r"[!-\-/-~]{1,256}", re.ASCII)
STANDARD_PREFIX = "whsec_"


def challenge_token(secret: str) -> str:
    """Return the token by which a vendor asks whether an address is ours.

    It travels in the query, where logs can see it, so it must not be the secret itself.
    """
    return hmac.digest(secret.encode(), b"hub.verify_token", "sha256").hex()[:32]


class Algorithm(StrEnum):
    """The algorithm that a vendor signs with."""

    HMAC_SHA256 = "hmac-sha256"  # both sides know the secret
    ECDSA_SHA256 = "ecdsa-sha256"  # the vendor has a private key; our secret is its public key (DER, base64)


class SignedPart(Enum):
    """A piece of the message that is signed."""

    ID = "id"  # of the delivery
    TIMESTAMP = "timestamp"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Signature:
    """How one vendor signs. Header names are in lower case."""

    header: str
    # Stands before each signature, such as `sha256=`. Several signatures are separated by blanks.
    prefix: str = ""
    message: tuple[SignedPart | bytes, ...] = (SignedPart.BODY,)  # what is signed
    timestamp_header: str = ""  # whole seconds since 1970
    id_header: str = ""  # names a delivery
    is_hex: bool = False  # the signature is hexadecimal, and base64 otherwise
    # The key is the secret's base64, after `whsec_`; otherwise the secret's characters are the key
    base64_secret: bool = False
    algorithm: Algorithm = Algorithm.HMAC_SHA256
    # Two prefixes of header names: the one that the names above begin with, and the one that other senders of
    # the same scheme use instead. Example: `webhook-` and `svix-`.
    twin: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SignedDelivery:
    """A webhook's message and its signatures, as the request has them: nothing is checked yet."""

    message: bytes  # what the signatures are made over
    signatures: tuple[bytes, ...]
    sent_at: int | None = None  # seconds since 1970; None if its scheme has no timestamp
    # The vendor's name for this delivery; "" if there is none. It is signed only if the scheme's message
    # holds it.
    delivery_id: str = ""


Check = Callable[[bytes, bytes, str], bool]  # (message, signature, secret) -> whether they fit


def read_delivery(scheme: Signature, headers: Mapping[str, str], body: bytes) -> SignedDelivery | None:
    """Read a request by its vendor's scheme; returns None if a header is missing or malformed.

    headers: names in lower case.
    """
    headers = _headers_of_scheme(scheme, headers)
    signatures = tuple(_signatures(scheme, headers.get(scheme.header, "")))
    timestamp, delivery = headers.get(scheme.timestamp_header, ""), headers.get(scheme.id_header, "")
    needed = set(scheme.message)
    if not 0 < len(signatures) <= SIGNATURES_MAX:
        return None
    if SignedPart.ID in needed and DELIVERY_ID.fullmatch(delivery) is None:
        return None
    if SignedPart.TIMESTAMP in needed and TIMESTAMP.fullmatch(timestamp) is None:
        return None
    parts = {
        SignedPart.ID: delivery.encode(),
        SignedPart.TIMESTAMP: timestamp.encode(),
        SignedPart.BODY: body,
    }
    message = b"".join(piece if isinstance(piece, bytes) else parts[piece] for piece in scheme.message)
    sent_at = int(timestamp) if SignedPart.TIMESTAMP in needed else None
    return SignedDelivery(message, signatures, sent_at, delivery)


def is_fresh(delivery: SignedDelivery, now: datetime) -> bool:
    """Return whether a request was signed within five minutes of now, or has no timestamp."""
    return delivery.sent_at is None or abs(int(now.timestamp()) - delivery.sent_at) <= AGE_SECONDS_MAX


def is_signed(delivery: SignedDelivery, secrets: Iterable[str], check: Check) -> bool:
    """Return whether one of the signatures is of one of the secrets."""
    return any(
        check(delivery.message, signature, secret) for secret in secrets for signature in delivery.signatures
    )


def hmac_check(scheme: Signature) -> Check:
    """Return the check of a scheme that signs by HMAC. It takes the same time wherever a difference is.

    A secret that cannot sign, because somebody has edited it, fits nothing. Others of the hook still do.
    """

    def check(message: bytes, signature: bytes, secret: str) -> bool:
        try:
            key = secret.encode()
            if scheme.base64_secret:
                key = base64.b64decode(secret.removeprefix(STANDARD_PREFIX), validate=True)
        except ValueError:
            return False
        return hmac.compare_digest(hmac.digest(key, message, "sha256"), signature)

    return check


def _headers_of_scheme(scheme: Signature, headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers, those under the twin's prefix renamed to the scheme's if the twin's signature came.

    Then all headers of the scheme are the twin's: an id beside a twin's signature is not what it signed.
    """
    if scheme.twin is None or headers.get(scheme.header):
        return headers
    prefix, twin_prefix = scheme.twin
    others = {name: value for name, value in headers.items() if not name.startswith(prefix)}
    renamed = {
        prefix + name.removeprefix(twin_prefix): value
        for name, value in others.items()
        if name.startswith(twin_prefix)
    }
    return others | renamed


def _signatures(scheme: Signature, header: str) -> Iterable[bytes]:
    """Yield the signatures of a header; those of another version, such as `v1a,`, are left out."""
    for word in header.split(" "):
        if word and word.startswith(scheme.prefix):
            try:
                text = word.removeprefix(scheme.prefix).encode("ascii")
                yield binascii.unhexlify(text) if scheme.is_hex else base64.b64decode(text, validate=True)
            except ValueError:
                continue
