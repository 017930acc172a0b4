# SPDX-License-Identifier: Apache-2.0
"""What the encoders and decoders of single types may ask of the encoding or decoding under way."""

from collections.abc import Sequence
from typing import Any, Protocol

from sealpoint.limits import Limits

__all__ = ["Packer", "Unpacker"]


class Packer(Protocol):
    """One encoding under way, flat or as a tree."""

    limits: Limits

    def pack(self, value: Any) -> bytes:
        """Encode a nested value. MUST refuse nesting beyond `limits.extension_depth_max`."""
        ...

    def pack_items(self, parts: Sequence[bytes]) -> bytes:
        """Encode an array whose members are already encoded."""
        ...

    def costly(self) -> None:
        """Count a value that costs much more than its bytes. MUST refuse more than the limit."""
        ...

    def check_keys(self, keys: Sequence[Any], *, in_set: bool = False) -> None:
        """MUST refuse keys whose hash or equality is application code, or that collide."""
        ...


class Unpacker(Protocol):
    """One decoding under way, flat or as a tree."""

    limits: Limits

    def unpack(self, payload: bytes | memoryview) -> Any:
        """Decode a nested value that `payload` consists of, and nothing after it.

        MUST refuse nesting beyond `limits.extension_depth_max`.
        """
        ...

    def check_level(self) -> None:
        """MUST refuse what `unpack` would, for a payload that is known without it."""
        ...

    def costly(self) -> None:
        """The same promise as `Packer.costly`."""
        ...

    def check_keys(self, keys: Sequence[Any], *, in_set: bool = False) -> None:
        """The same promise as `Packer.check_keys`, before a key is put into a dict or set."""
        ...
