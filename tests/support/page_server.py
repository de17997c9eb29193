"""The page and its API on a loopback port, below a base path as on the laptop."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.gateway import Left, ask

BASE = "/_aws/execute-api/abc123/$default"


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if not self.path.startswith(BASE + "/"):
            self._send(404, {}, b"")
            return
        try:
            answered = ask(self.command, self.path.removeprefix(BASE), dict(self.headers), body)
        except Left:
            self.close_connection = True
            return
        self._send(answered.status, answered.headers, answered.body)

    do_GET = do_POST = do_DELETE = do_PUT = _serve  # noqa: N815 (the names that http.server calls)

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # a long poll that the browser has left
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    """Yield the page's address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}{BASE}/"
    server.shutdown()
    server.server_close()
    thread.join()
