# SPDX-License-Identifier: Apache-2.0
"""Sign in another process, as with a KMS or an HSM: this one never holds a private key."""

import socket
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from nacl.signing import SigningKey

import sealpoint

SECONDS_MAX = 10


def serve(path: str) -> None:
    """The other process: it draws a key, tells its public half, and signs what it is sent."""
    key = SigningKey.generate()  # it lives here and nowhere else
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        Path(path).chmod(0o600)  # whoever may connect may sign: let nobody else
        listener.listen()
        print(bytes(key.verify_key).hex(), flush=True)
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rwb") as stream:
                size = int.from_bytes(stream.read(4), "big")
                stream.write(key.sign(stream.read(size)).signature)


class SocketSigner:
    """A `sealpoint.Signer`: 32 bytes of public key, and a method that signs."""

    def __init__(self, public_key: bytes, path: str) -> None:
        self.public_key = public_key
        self._path = path
        self._lock = threading.Lock()
        self.signed = 0

    def sign(self, data: bytes) -> bytes:
        """Ask the other process; a time limit, since a signer must not wait for ever."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS_MAX)
            connection.connect(self._path)
            connection.sendall(len(data).to_bytes(4, "big") + data)
            with connection.makefile("rb") as stream:
                signature = stream.read(64)
        with self._lock:  # it is called from several OS threads
            self.signed += 1
        return signature


def main() -> None:
    """Enter the public half into the roster, and save with the key in the other process."""
    with TemporaryDirectory() as disk, TemporaryDirectory() as home:
        url, path = f"sqlite:///{disk}/agents.db", f"{home}/signer"
        place = {"config_dir": f"{home}/config", "state_dir": f"{home}/state"}
        sealpoint.init(url, **place)
        command = [sys.executable, __file__, path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:  # noqa: S603
            public = other.stdout.readline().strip()
            rights = {"person": "billing", "roles": ["writer"], "namespaces": ["*"]}
            sealpoint.admin(url, **place).keys.add("billing", public=public, **rights)
            signer = SocketSigner(bytes.fromhex(public), path)
            with sealpoint.open_store(url, signer=signer, **place) as store:
                store.thread("invoice-17").save({"step": 1})
                ref = next(store.thread("invoice-17").history())
                print(f"Saved and signed by {ref.writer!r}, whose key is in process {other.pid}.")
            print(f"It signed {signer.signed} entries; each signature was verified before use.")
            other.terminate()
        with sealpoint.open_store(url, read_only=True, **place) as store:
            print(f"{store.verify().entries} entries verify with no private key at all.")


if __name__ == "__main__":
    serve(sys.argv[1]) if len(sys.argv) > 1 else main()
