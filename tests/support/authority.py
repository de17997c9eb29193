"""A sign-in service (OpenID Connect, authorization code with PKCE) that knows one person."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.gateway import token


class Authority(BaseHTTPRequestHandler):
    ended: list[dict[str, str]] = []  # noqa: RUF012 (one server at a time)
    challenges: dict[str, dict[str, str]] = {}  # noqa: RUF012 (one server at a time)

    def do_GET(self) -> None:
        url, base = urlsplit(self.path), f"http://{self.headers['host']}"
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/.well-known/openid-configuration":
            self._send(
                200,
                {
                    "authorization_endpoint": f"{base}/authorize",
                    "token_endpoint": f"{base}/token",
                    "end_session_endpoint": f"{base}/logout",
                },
            )
            return
        if url.path == "/logout":
            self.ended.append(query)
            self._send(302, {}, Location=query["post_logout_redirect_uri"])
            return
        assert query["code_challenge_method"] == "S256"
        assert (query["response_type"], query["client_id"]) == ("code", "app1")
        code = f"code{len(self.challenges)}"
        self.challenges[code] = query
        back = urlencode({"code": code, "state": query["state"]})
        self._send(302, {}, Location=f"{query['redirect_uri']}?{back}")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        asked = self.challenges.pop(sent["code"], None)
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        proved = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            asked is None
            or proved != asked["code_challenge"]
            or sent["redirect_uri"] != asked["redirect_uri"]
        ):
            self._send(400, {"error": "invalid_grant"})
            return
        self._send(
            200, {"access_token": token("oidc-user"), "id_token": "an-id-token", "token_type": "Bearer"}
        )

    def _send(self, status: int, body: Any, **headers: str) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Access-Control-Allow-Origin": "*", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def authority() -> Iterator[str]:
    """Yield the issuer's URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Authority)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
