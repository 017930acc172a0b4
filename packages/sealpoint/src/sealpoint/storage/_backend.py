# SPDX-License-Identifier: Apache-2.0
"""The description of a URL scheme's stores: how their URLs are written and how they are opened."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from sealpoint.storage._contract import Storage

Password = Callable[[], str]
"""Returns a password, newly read on each call."""


class OpenStorage(Protocol):
    """Opens a backend at an address."""

    def __call__(
        self,
        target: str,
        url: str,
        *,
        create: bool,
        read_only: bool,
        group: int | None,
        password: Password | None,
    ) -> Storage:
        """Open it.

        Args:
            target: The place of the address.
            url: The URL, which may describe how to connect.
            create: Make the store if it does not exist.
            read_only: Never write.
            group: The number of a group of this machine that shares it.
            password: Returns the password for the login of a database; None: none was given.

        Raises:
            UsageError: A group is named, and the store is not on this machine.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """The description of one scheme's stores."""

    scheme: str
    forms: tuple[str, ...]
    """The forms of its URLs, for messages."""
    read: Callable[[str], str]
    """Extracts the address from a URL: the same text for the same address.

    Raises UrlInvalid. The address holds no password: it is shown, and stored with the pin.
    """
    write: Callable[[str], str]
    """The URL of an address, from which `read` gets the address again."""
    lies_as: Literal["file", "directory"] | None = None
    """The kind of the store on this machine, if its address is a path; otherwise None."""
    beside: tuple[str, ...] = ()
    """The suffixes of the files next to the store's file that belong to it."""
    read_way: Callable[[str], str] | None = None
    """Returns the URL with its connection details, such as the login; None: it has none."""
    is_vacant: Callable[[str, str, Password | None], bool] | None = None
    """Whether the place of an address is empty, given that, the URL and the password.

    Raises StorageUnavailable if this cannot be determined: an unreachable store must not look like
    one that was removed. None: a store ends with its process.
    """
    open: OpenStorage | None = None
    """None as `is_vacant`: such a store is made with its own keys and anchor, by `open_store`."""

    @property
    def outlives_process(self) -> bool:
        """Whether a store exists while it is not open: it then needs a pin and an anchor."""
        return self.open is not None
