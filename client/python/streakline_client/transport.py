"""One request and its reply.

A transport is any function from Request to Reply. over_http makes the usual one.
"""

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

ANSWER_BYTES_MAX = 16_000_000
INTERIM_MAX = 100


class StreaklineError(Exception):
    """The base of this package's own exceptions."""


class Unreachable(StreaklineError):
    """No answer came: the network, a timeout, or bytes that are no answer."""


class Refused(StreaklineError):
    """The service answered with an error: HTTP status, code, message, and details that name fields.

    Its text has the first three.
    """

    def __init__(self, status: int, code: str, message: str, details: Any = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message, self.details = status, code, message, details


@dataclass(frozen=True, slots=True)
class Request:
    """A request."""

    method: str
    path: str  # below the service's address, with its query
    headers: Mapping[str, str]
    body: bytes | None = None
    timeout: float = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of any status."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)  # lower-case name -> value


Transport = Callable[[Request], Reply]


class _Response(http.client.HTTPResponse):
    """Skips interim answers, such as 102 and 103, which come before the answer (RFC 9110, 15.2)."""

    def _read_status(self) -> tuple[str, int, str]:
        read_status: Any = getattr(http.client.HTTPResponse, "_read_status")  # noqa: B009 (the stubs leave it out)
        # http.client itself skips 100 only. 101 ends HTTP, and nobody has asked for that.
        for _ in range(INTERIM_MAX):
            version, status, reason = read_status(self)
            if not 101 < status < 200:
                return version, status, reason
            http.client.parse_headers(self.fp)
        raise http.client.HTTPException(f"over {INTERIM_MAX} interim answers")


class _Connection(http.client.HTTPConnection):
    response_class = _Response


class _SecureConnection(http.client.HTTPSConnection):
    response_class = _Response


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error. To follow it would send the token to another address."""

    def redirect_request(self, *_: object) -> None:
        return None


def over_http(url: str) -> Transport:
    """Return a transport to the service at a URL (https://host, or one with a base path).

    Raises ValueError for another address. The transport raises Unreachable.
    """
    if not _is_address(url):
        raise ValueError(
            "url must begin with https:// or http:// and name a host, such as https://api.example.com,"
            f" and not {url!r}"
        )
    base, opener = url.strip().rstrip("/"), urllib.request.build_opener(_Http, _Https, _NoRedirect)

    def send(request: Request) -> Reply:
        http_request = urllib.request.Request(  # noqa: S310 (the scheme was checked above)
            f"{base}{request.path}", request.body, dict(request.headers), method=request.method
        )
        try:
            status, answer = _exchange(opener, http_request, request.timeout)
            with answer:
                return _reply(status, answer)
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a token is no header
            raise Unreachable(f"{request.method} {request.path.partition('?')[0]}: {error}") from error

    return send


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
        return (
            parts.scheme in ("https", "http") and bool(parts.hostname) and not (parts.query or parts.fragment)
        )
    except (AttributeError, ValueError):
        return False


def _exchange(
    opener: urllib.request.OpenerDirector, http_request: urllib.request.Request, timeout: float
) -> "tuple[int, http.client.HTTPResponse | urllib.error.HTTPError]":
    """Return (status, answer), of any status. Reading the answer's body may still fail."""
    try:
        answer: http.client.HTTPResponse = opener.open(http_request, timeout=timeout)
    except urllib.error.HTTPError as error:
        return error.code, error
    return answer.status, answer


def _reply(status: int, answer: "http.client.HTTPResponse | urllib.error.HTTPError") -> Reply:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    body, announced = answer.read(ANSWER_BYTES_MAX), headers.get("content-length", "")
    if announced.isdigit() and len(body) < min(int(announced), ANSWER_BYTES_MAX):
        raise http.client.IncompleteRead(body, int(announced) - len(body))
    return Reply(status, body, headers)
