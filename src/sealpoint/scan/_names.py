# SPDX-License-Identifier: Apache-2.0
"""How a name that a file chose is shown in a message: quoted, escaped and cut.

A name is the only thing of a file's content that a message repeats. It cannot break out of its
line, hide behind control characters or fill a screen.
"""

__all__ = ["shown"]

_CHARACTERS_MAX = 80


def shown(name: str) -> str:
    """A name as it may stand in a message."""
    text = ascii(name)
    return text if len(text) <= _CHARACTERS_MAX else text[: _CHARACTERS_MAX - 3] + "..."
