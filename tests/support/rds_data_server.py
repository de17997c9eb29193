"""Serves the stand-in for the RDS Data API over HTTP, as botocore speaks it."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg

from tests.support.rds_data_api import MODEL, RdsDataApi
from tests.support.rds_data_values import Refused

OPERATIONS = {MODEL.operation_model(name).http["requestUri"]: name for name in MODEL.operation_names}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # many callers may come at once


@contextmanager
def serving(api: RdsDataApi) -> Iterator[str]:
    """Serve on a loopback port; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer leaves in one packet

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.headers["Authorization"].startswith("AWS4-HMAC-SHA256"), "not signed"
            operation, status, error = OPERATIONS[self.path], 200, ""
            try:
                answer = api.answer(operation, request)
            except Refused as refused:
                status, error, answer = refused.status, refused.code, {"message": refused.text}
            except psycopg.Error as broken:
                status, error, answer = 500, "InternalServerErrorException", {"message": str(broken)}
            if operation in api.lost:
                api.lost.remove(operation)
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if error:
                self.send_header("x-amzn-ErrorType", error)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        api.close()
