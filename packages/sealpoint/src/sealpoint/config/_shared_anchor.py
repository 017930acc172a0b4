# SPDX-License-Identifier: Apache-2.0
"""The anchor that a store shares with other machines: `anchor.json` beside its pin.

It is declared once, in a file of this user, and asked from then on by everything that opens the
store: no variable that somebody forgets to set makes a machine judge by its own memory alone. The
file holds a URL, with the login and without a password; it may also come with a mounted secret.

The secret that keys the slots lies in the anchor's database, so that a new machine needs no more
than the pin, this URL and a login. A machine keeps the one that it first saw, in `slots.key`, and
refuses another: under another one, no slot would be found, and every thread would look new.
"""

from collections.abc import Callable
from contextlib import suppress

import msgspec

from sealpoint import _parts
from sealpoint.anchor import AnchorBackend, AnchorUrl, SharedAnchor
from sealpoint.config._directory import StoreDirectory
from sealpoint.config._secret_files import replace_file, sync_directory, write_new_file
from sealpoint.errors import ConfigError, StoreExists, UrlInvalid

_BYTES_MAX = 64 * 1024


class _Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `anchor.json` says."""

    url: str


class SharedAnchorFile:
    """Which anchor a store shares, as this user has declared it."""

    __slots__ = ("_directory", "path")

    def __init__(self, directory: StoreDirectory) -> None:
        self._directory = directory
        self.path = directory.path / "anchor.json"

    def url(self) -> AnchorUrl | None:
        """Where the shared anchor is, or None if there is none.

        Raises:
            ConfigError: The file that says so is malformed.
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
        """Ask this anchor from now on; another login to the same one may be declared.

        Raises:
            StoreExists: Another one is declared.
        """
        known = self.require_same(url)
        self._directory.prepare(self._directory.path)
        document = msgspec.json.encode(_Declared(url=url.spelled_out))
        data = msgspec.json.format(document, indent=2) + b"\n"
        if known is None:
            write_new_file(self.path, data)
            self.require_same(url)  # of two at once, the first has won
        elif known != url:
            replace_file(self.path, data)

    def require_same(self, url: AnchorUrl) -> AnchorUrl | None:
        """What is declared, which has to be nothing, or a way to the same anchor.

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
        """Ask it no more."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        sync_directory(self.path.parent)


def parse_anchor_url(text: str) -> AnchorUrl:
    """The URL of a shared anchor.

    Raises:
        UrlInvalid: It is none, or holds a password.
        ExtraMissing: The part that knows such anchors is not installed.
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
        ExtraMissing: The part that knows such anchors is not installed.
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
