# SPDX-License-Identifier: Apache-2.0
"""The anchor that a store shares with other machines: `anchor.json` next to its pin.

The user declares it once, in a file, and everything that opens the store uses it from then on: a
forgotten variable cannot make a machine judge by its own anchor alone. The file holds a URL, with
the login and without a password; it may also come from a mounted secret.

The secret that keys the slots is in the anchor's database, so that a new machine needs only the
pin, this URL and a login. A machine stores the secret that it first saw, in `slots.key`, and
refuses another: with another secret, no slot would be found, and every thread would look new.
"""

from collections.abc import Callable
from contextlib import suppress

import msgspec

from sealpoint import _parts
from sealpoint.anchor import AnchorBackend, AnchorUrl, SharedAnchor
from sealpoint.config._protected_files import replace_file, sync_directory, write_new_file
from sealpoint.config._store_directory import StoreDirectory
from sealpoint.errors import ConfigError, StoreExists, UrlInvalid

_BYTES_MAX = 64 * 1024


class _Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of `anchor.json`."""

    url: str


class SharedAnchorFile:
    """The user's declaration of the anchor that a store shares."""

    __slots__ = ("_directory", "path")

    def __init__(self, directory: StoreDirectory) -> None:
        self._directory = directory
        self.path = directory.path / "anchor.json"

    def url(self) -> AnchorUrl | None:
        """Return the URL of the shared anchor, or None if there is none.

        Raises:
            ConfigError: The file that declares it is malformed.
            KeyFileUnsafe: Others can change it.
        """
        data = self._directory.read(self.path, bytes_max=_BYTES_MAX, secret=False, mounted=True)
        if data is None:
            return None
        try:
            return parse_anchor_url(msgspec.json.decode(data, type=_Declared).url)
        except (msgspec.MsgspecError, UrlInvalid) as exc:
            raise ConfigError(
                f"{self.path}: expected the URL of an anchor as JSON, found {len(data)} bytes that "
                "are not one",
                hint="Bring the file back from the backup of the keys; without it this machine "
                "would forget to ask the shared anchor.",
            ) from exc

    def declare(self, url: AnchorUrl) -> None:
        """Use this anchor from now on; declaring another login to the same one is allowed.

        Raises:
            StoreExists: Another one is declared.
        """
        known = self.require_same(url)
        self._directory.prepare(self._directory.path)
        document = msgspec.json.encode(_Declared(url=url.spelled_out))
        data = msgspec.json.format(document, indent=2) + b"\n"
        if known is None:
            write_new_file(self.path, data)
            self.require_same(url)  # of two concurrent calls, the first wins
        elif known != url:
            replace_file(self.path, data)

    def require_same(self, url: AnchorUrl) -> AnchorUrl | None:
        """Return the declared URL; require that it is None or names the same anchor.

        Raises:
            StoreExists: Another one is declared.
        """
        known = self.url()
        if known is not None and known.place != url.place:
            raise StoreExists(
                f"store {self._directory.url}: it shares another anchor already, as {self.path} "
                "says",
                hint="To change over, leave that one first: sealpoint anchor leave",
            )
        return known

    def forget(self) -> None:
        """Stop using the anchor."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        sync_directory(self.path.parent)


def parse_anchor_url(text: str) -> AnchorUrl:
    """Parse the URL of a shared anchor.

    Raises:
        UrlInvalid: It is not valid, or holds a password.
        ExtraMissing: The part for such anchors is not installed.
    """
    found: object = text
    scheme = text.partition(":")[0] if isinstance(found, str) else ""
    return _backend_of(scheme).read(text)


def open_shared_anchor(
    url: AnchorUrl,
    *,
    store: bytes,
    password: Callable[[], str] | None,
    create: bool = False,
    read_only: bool = False,
) -> SharedAnchor:
    """Open the anchor that a URL names.

    Raises:
        AnchorUnavailable: It cannot be used.
        ExtraMissing: The part for such anchors is not installed.
    """
    opened = _backend_of(url.scheme).open
    return opened(url, store=store, password=password, create=create, read_only=read_only)


def _backend_of(scheme: str) -> AnchorBackend:
    found: AnchorBackend | None = _parts.load(_parts.ANCHORS, scheme)
    if found is None:
        # The rest of an unknown URL may hold a password.
        schemes = ", ".join(_parts.names(_parts.ANCHORS))
        raise UrlInvalid(
            f"anchor URL: expected one with the scheme {schemes}, found another scheme",
            hint="Write postgresql://USER@HOST/DATABASE.",
        )
    return found
