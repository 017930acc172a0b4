# SPDX-License-Identifier: Apache-2.0
"""Anchors that machines share: how a URL names one, and how to open it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sealpoint.anchor._contract import Anchor


class SharedAnchor(Anchor, Protocol):
    """An anchor that several machines use, and that stores the secret of its slots for them."""

    def secret(self) -> bytes | None:
        """Return the secret that keys the slots of the store, or None if there is none yet."""
        ...

    def keep_secret(self, secret: bytes) -> bytes:
        """Store the secret unless one is stored already; return the stored one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorUrl:
    """The location of a shared anchor, and how to reach it."""

    scheme: str
    place: str
    """The same text for the same anchor, independent of the login."""
    spelled_out: str
    """The URL with every default filled in; it is stored, and holds no password."""
    text: str
    """The URL as displayed."""

    def __str__(self) -> str:
        return self.text


class OpenAnchor(Protocol):
    """A function that opens a shared anchor."""

    def __call__(
        self,
        url: AnchorUrl,
        *,
        store: bytes,
        password: Callable[[], str] | None,
        create: bool,
        read_only: bool,
    ) -> SharedAnchor:
        """Open the anchor.

        Args:
            url: Its location.
            store: The store's id.
            password: Returns the password of the database login; None: no password was given.
            create: Create its tables if they are missing.
            read_only: Never write.

        Raises:
            AnchorUnavailable: It cannot be used.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorBackend:
    """The implementation of the shared anchors of one URL scheme."""

    read: Callable[[str], AnchorUrl]
    """Parse the whole text of a URL. Raises UrlInvalid."""
    open: OpenAnchor
