# SPDX-License-Identifier: Apache-2.0
"""The root of the error tree."""

from typing import ClassVar

__all__ = ["SealpointError"]


class SealpointError(Exception):
    """The root of the tree; catch it to catch everything Sealpoint raises on purpose.

    Args:
        message: Names the thing, what was expected and what was found.
        hint: What to do about it; the class's own hint when absent.
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1
    hint: str = "Read the message; the error reference explains every code."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint
        # So that an error which nobody catches says what to do as well.
        self.add_note(f"hint: {self.hint}")

    def as_dict(self) -> dict[str, str | int]:
        """The one JSON shape of an error: what `--json` prints."""
        return {
            "code": self.code,
            "exit_status": self.exit_status,
            "message": str(self),
            "hint": self.hint,
        }
