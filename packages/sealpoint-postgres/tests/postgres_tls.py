# SPDX-License-Identifier: Apache-2.0
"""TLS in front of a PostgreSQL server that has none, as poolers and proxies offer it."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_HOST = "127.0.0.1"
_WANTS_TLS = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
_WANTS_GSS = (8).to_bytes(4, "big") + (80877104).to_bytes(4, "big")


def certify(name: str, directory: Path) -> Path:
    """Make a certificate for the name of a host, signed by itself, with its key beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{name}.crt"
    file.write_bytes(made.public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    file.with_suffix(".key").write_bytes(secret)
    return file


@contextlib.contextmanager
def tls_front(certificate: Path, port: int) -> Iterator[int]:
    """Offer TLS on a port of this machine for the server on another; plain connections pass."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    with socket.create_server((_HOST, 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client = listener.accept()[0]
                except OSError:  # it was closed
                    return
                threading.Thread(target=_join, args=(client, context, port), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _join(client: socket.socket, context: ssl.SSLContext, port: int) -> None:
    """Carry bytes both ways until one side ends."""
    with contextlib.suppress(OSError), socket.create_connection((_HOST, port)) as server:
        first = client.recv(8, socket.MSG_WAITALL)
        while first in {_WANTS_GSS, _WANTS_TLS}:
            client.sendall(b"S" if first == _WANTS_TLS else b"N")
            if first == _WANTS_TLS:
                client, first = context.wrap_socket(client, server_side=True), b""
                break
            first = client.recv(8, socket.MSG_WAITALL)
        server.sendall(first)
        back = threading.Thread(target=_carry, args=(server, client), daemon=True)
        back.start()
        _carry(client, server)
        back.join()
    client.close()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
