# SPDX-License-Identifier: Apache-2.0
"""The key that takes the place of another: `keys/<identity>.next`, until the rotation is done.

It is durable before any roster names it, and takes the name of the old file last. So whatever
interrupts a rotation, the private half of a key that a roster holds is never lost. The old file
is gone then: reading needs no private key, and the old one may not write any more.
"""

from pathlib import Path

from sealpoint.config._disk import move_file, write_new_file
from sealpoint.config._key_files import KeyFiles, key_file_bytes
from sealpoint.config._names import check_identity_name
from sealpoint.errors import KeyMissing
from sealpoint.signing import KeyFacts, PrivateKey, Unlock, describe_key_file

__all__ = ["NextKeyFiles"]

_NEXT_SUFFIX = ".next"
_FILE_BYTES_MAX = 16 * 1024


class NextKeyFiles(KeyFiles):
    """The key files of a store, and those that are to take their places."""

    __slots__ = ()

    def next_key(self, name: str) -> KeyFacts | None:
        """The next key of an identity, if one was prepared; its secret stays closed.

        Raises:
            KeyFileUnsafe: Others can read the file, or it is damaged.
            NameInvalid: No identity can be called this.
        """
        data = self._read(self._next_path(name), bytes_max=_FILE_BYTES_MAX, secret=True)
        return None if data is None else describe_key_file(data, name=name)

    def write_next_key(self, signer: PrivateKey, choose: Unlock | None = None) -> None:
        """Keep the next key of an identity; one that is there stays as it is."""
        path = self._next_path(signer.name)
        self._prepare(path.parent)
        write_new_file(path, key_file_bytes(signer, choose))

    def take_next_key(self, name: str) -> None:
        """Let the next key take the place of the one before, whose file is gone with that.

        Raises:
            KeyMissing: There is no next key.
        """
        if self.next_key(name) is None:
            raise KeyMissing(
                f"key {name!r} of store {self.url}: expected a file {self._next_path(name)}, "
                "found none"
            )
        move_file(self._next_path(name), self._key_path(name))

    def _next_path(self, name: str) -> Path:
        return self.directory / "keys" / f"{check_identity_name(name)}{_NEXT_SUFFIX}"
