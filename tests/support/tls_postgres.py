"""TLS before a PostgreSQL that has none: a TCP filter that answers as a server with a certificate does."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

SSL_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"


def _certificate(name: str, key: Any, signer: str, signer_key: Any, is_authority: bool) -> x509.Certificate:
    now = datetime.now(UTC)
    subject, issuer = (
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, each)]) for each in (name, signer)
    )
    made = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    # Python 3.13 asks for what follows, as RFC 5280 does.
    signer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key())
    made = made.add_extension(signer_id, critical=False)
    own_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    made = made.add_extension(own_id, critical=False)
    made = made.add_extension(_usage(is_authority), critical=True)
    return made.sign(signer_key, hashes.SHA256())


def _usage(is_authority: bool) -> x509.KeyUsage:
    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")
    never = dict.fromkeys((*unused, "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=not is_authority, key_cert_sign=is_authority, **never)


def make_authority(folder: Path, host: str) -> tuple[Path, Path]:
    """Make an authority and a server's certificate; returns their files, the latter with its key."""
    own, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority, server = folder / "authority.pem", folder / "server.pem"
    pem = serialization.Encoding.PEM
    authority.write_bytes(_certificate("test authority", own, "test authority", own, True).public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    server.write_bytes(_certificate(host, key, "test authority", own, False).public_bytes(pem) + private)
    return authority, server


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for each in (source, sink):
        each.close()


def _serve(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        if client.recv(8) != SSL_REQUEST:
            client.close()
            continue
        client.sendall(b"S")
        try:
            secured = context.wrap_socket(client, server_side=True)
        except (ssl.SSLError, OSError):
            continue
        server = socket.create_connection(("127.0.0.1", port))
        for ends in ((secured, server), (server, secured)):
            threading.Thread(target=_pump, args=ends, daemon=True).start()


@contextmanager
def securing(port: int, certificate: Path) -> Iterator[int]:
    """Listen for TLS and pass connections on to a PostgreSQL; yields the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(listener, context, port), daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.close()
