"""A customer's endpoint: a real HTTP server that keeps what it is sent, and answers as it is told to."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """received: (headers, body) of each request. answer: the status for a request's body."""

    port: int = 0
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answer: Callable[[bytes], int] = lambda _: 204
    behave: Callable[[Any], None] | None = None


@contextmanager
def receiver(address: str = "127.0.0.1", context: Any = None) -> Iterator[Receiver]:
    """Serve on a free port until the block ends. context: of TLS. behave: writes the answer by itself."""
    told = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            told.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
            if told.behave:
                told.behave(self)
                return
            status = told.answer(body)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", f"http://127.0.0.1:{told.port}/redirected")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer((address, 0), Handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    told.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
