"""Outgoing webhooks (docs/rules.md, rule 18): which URLs they may be sent to, and their signatures.

They are sent to public addresses alone, and signed as Standard Webhooks (https://www.standardwebhooks.com).
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

URL_LENGTH_MAX = 1000
HTTPS_PORT, HTTP_PORT = 443, 80
PLAIN = re.compile(r"[!-\[\]-~]+", re.ASCII)  # no blank, no control character, no backslash
LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
# IANA's special-purpose registries. They stand here, because those of Python differ by its version.
CLOSED_4 = [
    IPv4Network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
]
# Of IPv6 only global unicast is open, less what leads on to IPv4 (Teredo, 6to4) or is for documentation.
OPEN_6 = IPv6Network("2000::/3")
CLOSED_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
SECRET_PREFIX = "whsec_"  # noqa: S105 (the standard's prefix of every secret)
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64


class UrlRefused(ValueError):
    """An endpoint's URL cannot be taken; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes."""

    is_secure: bool
    host: str
    port: int
    path: str  # with the query

    @property
    def host_header(self) -> str:
        """The value of HTTP's header Host: without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default_port = HTTPS_PORT if self.is_secure else HTTP_PORT
        return host if self.port == default_port else f"{host}:{self.port}"


def is_public(address: str) -> bool:
    """Return whether an IP address is public. An IPv4-mapped one counts as the address that it maps."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is None:
            return ip in OPEN_6 and not any(ip in network for network in CLOSED_6)
        ip = ip.ipv4_mapped
    return not any(ip in network for network in CLOSED_4)


def target_of(url: str, *, may_be_private: bool = False) -> Target:
    """Read an endpoint's URL; raises UrlRefused. A name is resolved, and checked again, when it is called.

    may_be_private: on a laptop alone, where an endpoint may be http://127.0.0.1:8000/.
    """
    if not url or len(url) > URL_LENGTH_MAX or PLAIN.fullmatch(url) is None:
        raise UrlRefused(
            f"must be a URL of at most {URL_LENGTH_MAX} characters, without blanks or backslashes"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UrlRefused(f"is no URL: {error}"[:200]) from None
    if parts.scheme != "https" and not (may_be_private and parts.scheme == "http"):
        raise UrlRefused("must begin with https://")
    if "@" in parts.netloc:
        raise UrlRefused("must not have a user or a password in it")
    if parts.fragment or url.endswith("#"):
        raise UrlRefused("must not have a fragment (#)")
    if port == 0:
        raise UrlRefused("must have a port above 0")
    host = _host(parts.hostname or "", may_be_private=may_be_private)
    default_port = HTTPS_PORT if parts.scheme == "https" else HTTP_PORT
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme == "https", host, port or default_port, path)


def _host(host: str, *, may_be_private: bool) -> str:
    """Return a host in its one spelling; raises UrlRefused if it may not be called.

    A name that ends in a number is refused: it would be read as an address in another form, such as 0x7f.1.
    """
    name = host.lower().removesuffix(".")
    try:
        address = str(ip_address(name.replace("%", " ")))  # an address with a zone (%) is none
    except ValueError:
        address = ""
    if address and not may_be_private and not is_public(address):
        raise UrlRefused("must not lead to a private or reserved address")
    if address:
        return address
    labels = name.split(".")
    if NUMBER.fullmatch(labels[-1]):
        raise UrlRefused("must write an IP address as four decimal numbers")
    if not all(LABEL.fullmatch(label) for label in labels) or len(name) > 253:
        raise UrlRefused("has no host that can be called")
    if len(labels) < 2 and not may_be_private:
        raise UrlRefused("must name a host with its domain")
    return name


def secret_of(key: bytes) -> str:
    """Return a key in the form that its owner gets. Raises ValueError unless it has 24 to 64 bytes."""
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(f"a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")
    return SECRET_PREFIX + base64.b64encode(key).decode()


def key_of(secret: str) -> bytes:
    """Return the key of a secret. Raises ValueError, which does not quote it, if it is none."""
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

    secrets: those that are valid, the newest first. While a secret is rotated, both sign.
    """
    seconds = int(at.timestamp())
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(signature(secret, message_id, seconds, body) for secret in secrets),
    }
