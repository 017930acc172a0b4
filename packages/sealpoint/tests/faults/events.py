# SPDX-License-Identifier: Apache-2.0
"""What a program did to the files below a directory, one event for each system call that counts.

A node is a file or directory, whatever its names are; node 0 is the directory itself.
"""

import msgspec

__all__ = [
    "Event",
    "Link",
    "LostSync",
    "Make",
    "Mark",
    "Mode",
    "Rename",
    "Resize",
    "Sync",
    "Unlink",
    "Write",
]


class Make(msgspec.Struct, frozen=True, tag=True):
    """A file or directory came into being."""

    directory: int
    name: str
    node: int
    mode: int


class Link(msgspec.Struct, frozen=True, tag=True):
    """A file got another name."""

    directory: int
    name: str
    node: int


class Unlink(msgspec.Struct, frozen=True, tag=True):
    """A name went."""

    directory: int
    name: str


class Rename(msgspec.Struct, frozen=True, tag=True):
    """A name changed, and took the place of what had the new one."""

    directory: int
    name: str
    new_directory: int
    new_name: str


class Write(msgspec.Struct, frozen=True, tag=True):
    """Bytes of a file."""

    node: int
    offset: int
    data: bytes


class Resize(msgspec.Struct, frozen=True, tag=True):
    """A file was cut off or made longer."""

    node: int
    size: int


class Mode(msgspec.Struct, frozen=True, tag=True):
    """Permissions."""

    node: int
    mode: int


class Sync(msgspec.Struct, frozen=True, tag=True):
    """Whatever was written to the file, or changed in the directory, is on the disk."""

    node: int


class LostSync(msgspec.Struct, frozen=True, tag=True):
    """The sync failed: what was written since the last one never reaches the disk."""

    node: int


class Mark(msgspec.Struct, frozen=True, tag=True):
    """Something that the program told us, such as that a save returned."""

    text: str


Event = Make | Link | Unlink | Rename | Write | Resize | Mode | Sync | LostSync | Mark
