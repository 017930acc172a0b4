# SPDX-License-Identifier: Apache-2.0
"""What there is to know about the stores of one URL scheme: how they are named and opened."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from sealpoint.storage._contract import Storage

Password = Callable[[], str]
"""Gives a password, each time anew."""


class OpenStorage(Protocol):
    """How a backend is opened where an address leads."""

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
            target: Where the address leads.
            url: The URL, which may say how to get there.
            create: Make the store where there is none.
            read_only: Never write.
            group: The number of a group of this machine that shares it.
            password: Gives what the login of a database asks for; None: nobody said.

        Raises:
            UsageError: A group is named, and the store does not lie on this machine.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What there is to know about the stores of one scheme."""

    scheme: str
    forms: tuple[str, ...]
    """How a URL of it is written, for messages."""
    read: Callable[[str], str]
    """The address in the whole text of a URL: the same text for the same address.

    Raises UrlInvalid. It holds no password: it is shown, and kept beside the pin.
    """
    write: Callable[[str], str]
    """The URL of an address, from which `read` gets the address again."""
    lies_as: Literal["file", "directory"] | None = None
    """How a store lies on this machine, its address being a path; None if it does not."""
    beside: tuple[str, ...] = ()
    """What the names of files end in that lie beside the file of a store and belong to it."""
    read_way: Callable[[str], str] | None = None
    """The URL with what it says about how to get there, such as who logs in; None: nothing."""
    is_vacant: Callable[[str, str, Password | None], bool] | None = None
    """Whether there is nothing where an address leads, given that, the URL and the password.

    Raises StorageUnavailable if that cannot be told: a store that cannot be reached must not look
    like one that somebody took away. None: a store ends with its process.
    """
    open: OpenStorage | None = None
    """None as `is_vacant`: such a store is made with its own keys and anchor, by `open_store`."""

    @property
    def outlives_process(self) -> bool:
        """Whether a store is there when nobody has it open: it then needs a pin and an anchor."""
        return self.open is not None
