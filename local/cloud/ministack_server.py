"""Starts MiniStack, on its own Python, with eight changes.

Four make it faster:

- MiniStack unpacks code and layers for each process that it starts: 3,000 files, half a second of CPU, two
  seconds with the analytics layer. `SharedZip` unpacks each archive once. Nobody writes into these folders,
  as on AWS, where they are read-only.
- Its own server reads HTTP in Python. uvicorn with httptools reads it in C. A request that reads one item
  takes 0.46 ms of CPU instead of 0.80.
- It says which tables have changed: local/cloud/changes.py.
- Each call on Kinesis walks over all iterators of five minutes. Here they live for one.

Two make it answer browsers and clients as AWS does:

- An HTTP API says in a header why it refuses a token. `with_refusal_reason` adds that header.
- An HTTP API lists the origins whose pages may call it, and knows no "any port". Apps that are developed on
  this machine have a port each, so `LoopbackOrigins` lets in all pages of loopback addresses, and no others.

One makes it bear a crowd: MiniStack begins a process for each request that finds all others busy. On AWS each
has a CPU of its own; here fifty that begin at once take a minute, and their functions' timeouts kill them. So
a function has some processes at most, and further requests wait for one: `in_turn`.

One makes its streams complete: local/cloud/statement_streams.py.
"""

import base64
import contextlib
import hashlib
import json
import math
import os
import re
import resource
import sys
import tempfile
import threading
import time
import types
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import uvicorn
from ministack import app
from ministack.core import lambda_runtime
from ministack.services import apigateway, dynamodb, kinesis, lambda_svc

sys.path.append(str(Path(__file__).parents[2]))  # last, so that our modules' names hide no others
from local.cloud.changes import count_changes, with_counts
from local.cloud.statement_streams import announce_statements

ITERATOR_SECONDS = 60
PROCESSES_MAX = 8  # of a function at once: no function invokes itself and waits for the answer
WAITERS_MAX = 6  # of them, by requests that wait for their events
KEEP_ALIVE_SECONDS = 75  # as MiniStack has it
STOP_SECONDS_MAX = 5  # then open connections are cut off
# An HTTP API has two addresses here: a path, and a host name as on AWS.
APIS = "/_aws/execute-api/"
API_NAME = re.compile(rb"[^.]+\.execute-api\.localhost(:\d+)?", re.IGNORECASE)
# The origin of a page on this machine. Names below localhost are loopback, too (RFC 6761).
LOOPBACK = re.compile(
    rb"https?://(([a-z0-9-]+\.)*localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.IGNORECASE
)


class SharedZip(zipfile.ZipFile):
    """An archive that is unpacked once: other folders become links to the first."""

    def namelist(self) -> list[str]:
        """Return nothing: MiniStack would resolve each name three times, and no name leaves a folder."""
        return []

    def extractall(self, path: Any = None, *_: Any) -> None:
        """Unpack into an empty folder."""
        shared_folder = Path(tempfile.gettempdir()) / f"unpacked-{self._digest()}"
        if not shared_folder.exists():
            fresh = tempfile.mkdtemp(prefix="unpacking-")
            super().extractall(fresh, super().namelist())
            with contextlib.suppress(OSError):  # another thread has unpacked the same archive meanwhile
                Path(fresh).rename(shared_folder)
        Path(str(self.filename)).unlink()  # MiniStack has written it for this process alone
        Path(path).rmdir()
        Path(path).symlink_to(shared_folder, target_is_directory=True)

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for member in self.infolist():
            digest.update(f"{member.filename}\0{member.CRC}\0{member.file_size}\0".encode())
        return digest.hexdigest()


class LoopbackOrigins:
    """Answers pages of this machine as an HTTP API answers pages of the origins that it allows."""

    def __init__(self, inner: Any, allowed: dict[str, Any]) -> None:
        """inner: the application (ASGI). allowed: a CorsConfiguration, without its origins."""
        self._inner = inner
        self._preflight_headers = {
            b"access-control-allow-methods": ",".join(allowed["AllowMethods"]).encode(),
            b"access-control-allow-headers": ",".join(allowed["AllowHeaders"]).encode(),
            b"access-control-max-age": str(allowed["MaxAge"]).encode(),
        }
        self._answer_headers = {b"access-control-expose-headers": ",".join(allowed["ExposeHeaders"]).encode()}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request (ASGI)."""
        request_headers = dict(scope["headers"]) if scope["type"] == "http" and _is_api(scope) else {}
        origin = request_headers.get(b"origin", b"")
        if LOOPBACK.fullmatch(origin) is None:
            await self._inner(scope, receive, send)
        elif scope["method"] == "OPTIONS" and b"access-control-request-method" in request_headers:
            headers = [*self._preflight_headers.items(), *_origin_headers(origin), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._inner(
                scope, receive, lambda message: send(self._with_allowed_origin(message, origin))
            )

    def _with_allowed_origin(self, message: Any, origin: bytes) -> Any:
        if message["type"] != "http.response.start":
            return message
        kept_headers = [
            (name, value)
            for name, value in message["headers"]
            if not name.lower().startswith(b"access-control-")
        ]
        headers = [*kept_headers, *self._answer_headers.items(), *_origin_headers(origin)]
        return {**message, "headers": headers}


def _is_api(scope: Any) -> bool:
    host = dict(scope["headers"]).get(b"host", b"")
    return scope["path"].startswith(APIS) or API_NAME.fullmatch(host) is not None


def _origin_headers(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


def with_refusal_reason(authorize: Any) -> Any:
    """Return MiniStack's check of a token, whose refusals get the header www-authenticate (RFC 6750)."""

    async def check(route: Any, authorizer: Any, headers: Any, query: Any) -> Any:
        *claims, refusal = await authorize(route, authorizer, headers, query)
        if not refusal or refusal[0] != 401:
            return *claims, refusal
        status, refusal_headers, body = refusal
        sources = authorizer.get("identitySource", [])
        token = apigateway._extract_token_from_identity_source(sources, headers, query)  # noqa: SLF001 (it has no other)
        reason = "Bearer"  # a request without a token is told no more
        if token:
            fault = _token_fault(token, authorizer)
            reason = f'Bearer scope="" error="invalid_token" error_description="{fault}"'
        return *claims, (status, {**refusal_headers, "www-authenticate": reason}, body)

    return check


def _token_fault(token: str, authorizer: Any) -> str:
    """Return what is wrong with a token that was refused, in the words of an HTTP API."""
    configuration = authorizer.get("jwtConfiguration") or {}
    issuer, audiences = (
        configuration.get(name) or configuration.get(name.title()) for name in ("issuer", "audience")
    )
    try:
        _, payload, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        audience = claims.get("aud", claims.get("client_id"))
        token_audiences = {*audience} if isinstance(audience, list) else {audience}
        if issuer and claims.get("iss") != issuer:
            return "invalid issuer"
        if audiences and not token_audiences & {*audiences}:
            return "the token does not have a valid audience"
        if float(claims.get("exp", math.inf)) <= time.time():
            return "the token has expired"
    except (AttributeError, OverflowError, TypeError, ValueError):
        return "unable to decode the token"
    return "the token's signature is invalid"


def in_turn(execute: Any) -> Any:
    """Return MiniStack's execution of a function, of which only so many go on at once.

    Requests that ask to wait (`Prefer: wait=2`) have fewer places: others are answered meanwhile.
    """
    places: dict[str, Any] = defaultdict(lambda: threading.Semaphore(PROCESSES_MAX))
    waiters: dict[str, Any] = defaultdict(lambda: threading.Semaphore(WAITERS_MAX))

    def execute_in_turn(function: dict[str, Any], event: Any, *given: Any) -> Any:
        name = (function.get("config") or function).get("FunctionName", "")
        headers = (event.get("headers") if isinstance(event, dict) else None) or {}
        with waiters[name] if "prefer" in headers else contextlib.nullcontext(), places[name]:
            return execute(function, event, *given)

    return execute_in_turn


def serve() -> None:
    """Serve on BIND_HOST and GATEWAY_PORT until a signal ends it."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # each connection takes one
    allowed = os.environ.get("LOOPBACK_CORS")
    served = LoopbackOrigins(app.app, json.loads(allowed)) if allowed else app.app
    uvicorn.run(
        with_counts(served, count_changes(dynamodb)),
        host=os.environ["BIND_HOST"],
        port=int(os.environ["GATEWAY_PORT"]),
        loop="uvloop",
        http="httptools",
        log_level=os.environ["LOG_LEVEL"].lower(),
        access_log=False,
        server_header=False,
        date_header=False,  # MiniStack sends its own
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS_MAX,
    )


if __name__ == "__main__":
    lambda_runtime.zipfile = types.SimpleNamespace(**{**vars(zipfile), "ZipFile": SharedZip})
    apigateway._validate_jwt_authorizer = with_refusal_reason(apigateway._validate_jwt_authorizer)  # noqa: SLF001 (no setting has it)
    lambda_svc._execute_function_warm = in_turn(lambda_svc._execute_function_warm)  # noqa: SLF001 (no setting has it)
    announce_statements(dynamodb)
    kinesis.ITERATOR_EXPIRY_SECONDS = ITERATOR_SECONDS
    serve()
