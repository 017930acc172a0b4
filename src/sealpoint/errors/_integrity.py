# SPDX-License-Identifier: Apache-2.0
"""The store, its anchor or its roster is not what it should be: nothing was decoded."""

from sealpoint.errors._root import SealpointError

__all__ = [
    "AnchorUnavailable",
    "Edited",
    "Forged",
    "Forked",
    "Misplaced",
    "Missing",
    "NotTrusted",
    "RolledBack",
    "Tampered",
    "Unanchored",
]


class Tampered(SealpointError):
    """What lies in the store is not what was written there; nothing of it was decoded."""

    code = "tampered"
    exit_status = 30
    hint = "Do not go on with this store: find out who changed it, then restore a good copy."


class Edited(Tampered):
    """Stored bytes differ from the bytes that were sealed."""

    code = "edited"
    exit_status = 31


class Missing(Tampered):
    """Something that the sealed history needs is not in the store."""

    code = "missing"
    exit_status = 32


class Forged(Tampered):
    """An entry carries no valid signature of the key it names."""

    code = "forged"
    exit_status = 33


class Misplaced(Tampered):
    """A genuine entry lies where it was not written."""

    code = "misplaced"
    exit_status = 34


class RolledBack(SealpointError):
    """The store ends before the position that the anchor remembers."""

    code = "rolled-back"
    exit_status = 35
    hint = (
        "The store is older than it was: bring back the newest copy of it. If there is none, "
        "sealpoint accept-restore --dry-run --reason TEXT says what is lost, and how to accept it."
    )


class Forked(SealpointError):
    """The store went another way than the history that the anchor remembers."""

    code = "forked"
    exit_status = 36
    hint = "Two histories exist; keep both copies and find out which one is genuine."


class Unanchored(SealpointError):
    """The store holds a thread that the anchor has never seen."""

    code = "unanchored"
    exit_status = 37
    hint = "If this is the newest copy of the store, an operator may run sealpoint anchor adopt."


class AnchorUnavailable(SealpointError):
    """The anchor cannot be read or written.

    Attributes:
        ref: The checkpoint that was saved before the anchor failed, or None. It stands.
    """

    code = "anchor-unavailable"
    exit_status = 38
    hint = "Make the anchor work again, then load: whatever was saved is there."

    def __init__(self, message: str, *, hint: str | None = None, ref: object = None) -> None:
        super().__init__(message, hint=hint)
        self.ref = ref


class NotTrusted(SealpointError):
    """No pin vouches for the store, or the roster does not give a key the right it used."""

    code = "not-trusted"
    exit_status = 39
    hint = "Run sealpoint init for a new store, or sealpoint trust import for an existing one."
