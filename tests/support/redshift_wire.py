"""Lets Redshift's driver talk to PostgreSQL: a TCP filter that edits what the client sends.

Drops the startup parameters that PostgreSQL does not know, and DISTSTYLE, DISTKEY and SORTKEY from statements.
"""

import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

KNOWN = (b"user", b"database")
LAYOUT = re.compile(
    rb"DISTSTYLE \w+|DISTKEY ?\([^)]*\)|(COMPOUND |INTERLEAVED )?SORTKEY ?\([^)]*\)|ENCODE \w+", re.IGNORECASE
)
QUERY, PARSE = b"Q", b"P"


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        some = source.recv(size - len(data))
        if not some:
            raise EOFError
        data += some
    return data


def startup(body: bytes) -> bytes:
    """protocol, then name and value pairs, each ended by a zero, and a zero."""
    parts = body[4:].split(b"\0")
    pairs = [(name, value) for name, value in zip(parts[::2], parts[1::2], strict=False) if name in KNOWN]
    return body[:4] + b"".join(name + b"\0" + value + b"\0" for name, value in pairs) + b"\0"


def _client_to_server(client: socket.socket, server: socket.socket) -> None:
    try:
        (size,) = struct.unpack("!I", _exactly(client, 4))
        body = startup(_exactly(client, size - 4))
        server.sendall(struct.pack("!I", len(body) + 4) + body)
        while True:
            kind = _exactly(client, 1)
            (size,) = struct.unpack("!I", _exactly(client, 4))
            body = _exactly(client, size - 4)
            if kind in (QUERY, PARSE):
                body = LAYOUT.sub(b"", body)
            server.sendall(kind + struct.pack("!I", len(body) + 4) + body)
    except (EOFError, OSError):
        server.close()


def _server_to_client(server: socket.socket, client: socket.socket) -> None:
    try:
        while data := server.recv(65536):
            client.sendall(data)
    except OSError:
        pass
    client.close()


@contextmanager
def filtering(unix_socket: str) -> Iterator[int]:
    """Listen on a loopback port and pass connections on to a PostgreSQL's socket; yields the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(unix_socket)
            for pump, ends in ((_client_to_server, (client, server)), (_server_to_client, (server, client))):
                threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield int(listener.getsockname()[1])
    listener.close()
