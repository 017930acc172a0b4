# SPDX-License-Identifier: Apache-2.0
"""Which code a run consists of, as far as its application says so.

Nothing is looked up here; `sealpoint.config.code_of` reads versions, sources and revisions.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sealpoint.errors import WorldInvalid
from sealpoint.world._json import encode_json, freeze, name_text, named_object, plain_object, shown

__all__ = ["Code"]

_DIGEST = re.compile("[0-9a-f]{64}")
_FIELDS = ("modules", "revision", "version")


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """The identity of the code of a run.

    Args:
        version: The version of its package.
        modules: Names of modules, or of functions and where they are used, each with a SHA-256 in
            hexadecimal of what its source says.
        revision: The revision of its repository.

    Raises:
        WorldInvalid: A field is not of this form.
    """

    version: str | None = None
    modules: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None

    def __post_init__(self) -> None:
        for name, text in (("version", self.version), ("revision", self.revision)):
            if text is not None:
                name_text(text, f"code.{name}")
        modules, _ = named_object(self.modules, "code.modules")
        for name, digest in modules.items():
            if type(digest) is not str or not _DIGEST.fullmatch(digest):
                raise WorldInvalid(
                    f"code.modules[{shown(name)}]: expected a SHA-256 as 64 lower-case "
                    "hexadecimal digits, found something else"
                )
        object.__setattr__(self, "modules", freeze(modules))

    @classmethod
    def of(cls, value: object) -> Self | None:
        """Read an object with some of the fields; None if it says nothing.

        Raises:
            WorldInvalid: It has other fields, or is no object.
        """
        if value is None:
            return None
        if not isinstance(value, cls):
            data, _ = plain_object(value, "code")
            for name in data:
                if name not in _FIELDS:
                    raise WorldInvalid(
                        f"code: expected the fields {', '.join(_FIELDS)}, found {shown(name)}"
                    )
            value = cls(**data)
        return value if value.to_dict() else None

    def to_dict(self) -> dict[str, Any]:
        """The fields that say something, as plain JSON."""
        made = {"version": self.version, "modules": dict(self.modules), "revision": self.revision}
        return {name: value for name, value in made.items() if value}

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Code) else NotImplemented

    def __hash__(self) -> int:
        return hash(encode_json(self.to_dict()))
