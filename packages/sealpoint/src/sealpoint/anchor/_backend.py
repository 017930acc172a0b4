# SPDX-License-Identifier: Apache-2.0
"""Anchors that machines share: how one is named by a URL, and how it is opened."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sealpoint.anchor._contract import Anchor


class SharedAnchor(Anchor, Protocol):
    """An anchor that other machines ask too, and that keeps the secret of its slots for them."""

    def secret(self) -> bytes | None:
        """The secret under which the slots of the store are keyed, or None if none is kept."""
        ...

    def keep_secret(self, secret: bytes) -> bytes:
        """Keep the secret, unless one is kept already; gives the one that is kept now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorUrl:
    """Where a shared anchor is, and how to get there."""

    scheme: str
    place: str
    """The same text for the same anchor, whoever logs in."""
    spelled_out: str
    """The URL with everything that it implies; it is kept, and holds no password."""
    text: str
    """The URL as it is shown."""

    def __str__(self) -> str:
        return self.text


class OpenAnchor(Protocol):
    """How a shared anchor is opened."""

    def __call__(
        self,
        url: AnchorUrl,
        *,
        store: bytes,
        password: Callable[[], str] | None,
        create: bool,
        read_only: bool,
    ) -> SharedAnchor:
        """Open it.

        Args:
            url: Where it is.
            store: The store's id.
            password: Gives what the login of a database asks for; None: nobody said.
            create: Make its tables where there are none.
            read_only: Never write.

        Raises:
            AnchorUnavailable: It cannot be used.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorBackend:
    """What there is to know about the shared anchors of one URL scheme."""

    read: Callable[[str], AnchorUrl]
    """The anchor that the whole text of a URL names. Raises UrlInvalid."""
    open: OpenAnchor
