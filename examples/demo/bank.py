# SPDX-License-Identifier: Apache-2.0
"""Where the money of the demos is."""

from screen import say


class Bank:
    """An account, and what was paid from it."""

    def __init__(self) -> None:
        self.transfers: list[str] = []

    def tell(self, before: list[str]) -> None:
        """Print what has moved since there were only these transfers."""
        for place, transfer in enumerate(self.transfers):
            if place >= len(before):
                again = ", AGAIN" if transfer in before else ""
                say("bank", f"{transfer}{again}")
        if self.transfers == before:
            say("bank", "nothing moved")
