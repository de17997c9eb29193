"""Starts MiniStack, on its own Python, with less work for each process and each request.

- MiniStack unpacks code and layers for each process that it starts: 3,000 files, half a second of CPU, two
  with the analytics layer. Here that is done once for each archive. Nobody writes into these folders: on AWS
  they are read-only.
- Its own server reads HTTP in Python. This one does it in C, and a request that reads one item takes 0.46 ms
  of CPU instead of 0.80 (ARCHITECTURE.md).
- It splits the text of each PartiQL statement into words anew. Here each text is split once: a claim's
  statement takes 0.10 ms instead of 0.16.

An HTTP API's answer says in a header why it takes no token. MiniStack's says so, too, by what is here.

An HTTP API names the origins that may call it, and none of them with "any port". So apps that are developed
on this machine, each on a port of its own, are let in here: pages of loopback addresses, and no others.
"""

import base64
import contextlib
import functools
import hashlib
import json
import math
import os
import re
import resource
import tempfile
import time
import types
import zipfile
from pathlib import Path
from typing import Any

import uvicorn
from ministack import app
from ministack.core import lambda_runtime
from ministack.services import _dynamodb_keywords as partiql
from ministack.services import apigateway

KEEP_ALIVE_SECONDS = 75  # as MiniStack has it
STOP_SECONDS_MAX = 5  # then open connections are cut off
TEXTS_MAX = 1024
# An HTTP API has two addresses here: a path, and a name, as on AWS.
APIS = "/_aws/execute-api/"
API_NAME = re.compile(rb"[^.]+\.execute-api\.localhost(:\d+)?", re.IGNORECASE)
# Names below localhost are loopback, too (RFC 6761).
LOOPBACK = re.compile(
    rb"https?://(([a-z0-9-]+\.)*localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.IGNORECASE
)


class SharedZip(zipfile.ZipFile):
    """An archive that is unpacked once: other folders become links to the first."""

    def extractall(self, path: Any = None, *_: Any) -> None:
        """Unpack into an empty folder."""
        kept = Path(tempfile.gettempdir()) / f"unpacked-{self._digest()}"
        if not kept.exists():
            fresh = tempfile.mkdtemp(prefix="unpacking-")
            super().extractall(fresh)
            with contextlib.suppress(OSError):  # somebody else was first
                Path(fresh).rename(kept)
        Path(str(self.filename)).unlink()  # a copy for this process alone
        Path(path).rmdir()
        Path(path).symlink_to(kept, target_is_directory=True)

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for each in self.infolist():
            digest.update(f"{each.filename}\0{each.CRC}\0{each.file_size}\0".encode())
        return digest.hexdigest()


class LoopbackOrigins:
    """Answers the browsers of this machine as an HTTP API does that allows the origins of their pages."""

    def __init__(self, inner: Any, allowed: dict[str, Any]) -> None:
        """allowed: a CorsConfiguration, without its origins."""
        self._inner = inner
        self._asked = {
            b"access-control-allow-methods": ",".join(allowed["AllowMethods"]).encode(),
            b"access-control-allow-headers": ",".join(allowed["AllowHeaders"]).encode(),
            b"access-control-max-age": str(allowed["MaxAge"]).encode(),
        }
        self._answered = {b"access-control-expose-headers": ",".join(allowed["ExposeHeaders"]).encode()}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request (ASGI)."""
        given = dict(scope["headers"]) if scope["type"] == "http" and _is_api(scope) else {}
        origin = given.get(b"origin", b"")
        if LOOPBACK.fullmatch(origin) is None:
            await self._inner(scope, receive, send)
        elif scope["method"] == "OPTIONS" and b"access-control-request-method" in given:
            headers = [*self._asked.items(), *_allowing(origin), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._inner(
                scope, receive, lambda message: send(self._with_allowed_origin(message, origin))
            )

    def _with_allowed_origin(self, message: Any, origin: bytes) -> Any:
        if message["type"] != "http.response.start":
            return message
        own = [each for each in message["headers"] if not each[0].lower().startswith(b"access-control-")]
        return {**message, "headers": [*own, *self._answered.items(), *_allowing(origin)]}


def _is_api(scope: Any) -> bool:
    name = dict(scope["headers"]).get(b"host", b"")
    return scope["path"].startswith(APIS) or API_NAME.fullmatch(name) is not None


def _allowing(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


def saying_why(authorize: Any) -> Any:
    """Return MiniStack's check of a token with the header www-authenticate of a refusal (RFC 6750)."""

    async def checked(route: Any, authorizer: Any, headers: Any, query: Any) -> Any:
        *found, refusal = await authorize(route, authorizer, headers, query)
        if refusal and refusal[0] == 401:
            sources = authorizer.get("identitySource", [])
            token = apigateway._extract_token_from_identity_source(sources, headers, query)  # noqa: SLF001 (it has no other)
            why = (
                f' scope="" error="invalid_token" error_description="{_fault(token, authorizer)}"'
                if token
                else ""
            )
            refusal = (401, {**refusal[1], "www-authenticate": f"Bearer{why}"}, refusal[2])
        return *found, refusal

    return checked


def _fault(token: str, authorizer: Any) -> str:
    """Return what is wrong with a token that was refused."""
    wanted = authorizer.get("jwtConfiguration") or {}
    issuer, audiences = (wanted.get(name) or wanted.get(name.title()) for name in ("issuer", "audience"))
    try:
        _, middle, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        audience = claims.get("aud", claims.get("client_id"))
        named = {*audience} if isinstance(audience, list) else {audience}
        if issuer and claims.get("iss") != issuer:
            return "invalid issuer"
        if audiences and not named & {*audiences}:
            return "the token does not have a valid audience"
        if float(claims.get("exp", math.inf)) <= time.time():
            return "the token has expired"
    except (AttributeError, OverflowError, TypeError, ValueError):
        return "unable to decode the token"
    return "the token's signature is invalid"


def serve() -> None:
    """Serve on BIND_HOST and GATEWAY_PORT until a signal ends it."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each connection takes one
    allowed = os.environ.get("LOOPBACK_CORS")
    uvicorn.run(
        LoopbackOrigins(app.app, json.loads(allowed)) if allowed else app.app,
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
    # Nobody changes the list that it returns.
    partiql._tokenize = functools.lru_cache(TEXTS_MAX)(partiql._tokenize)  # noqa: SLF001 (no setting has it)
    apigateway._validate_jwt_authorizer = saying_why(apigateway._validate_jwt_authorizer)  # noqa: SLF001 (the same)
    serve()
