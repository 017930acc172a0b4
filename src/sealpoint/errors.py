# SPDX-License-Identifier: Apache-2.0
"""Every error Sealpoint raises, in one tree.

```
SealpointError                  error                  1
├── UsageError                  usage                  2   the call itself is wrong
│   ├── IdMalformed             id-malformed           2
│   ├── LimitInvalid            limit-invalid          2
│   ├── ObjectNotFound          object-not-found       2
│   └── RuleInvalid             rule-invalid           2
├── EncodeError                 encode                10   a value cannot be saved
│   ├── TypeNotAllowed          type-not-allowed      11
│   ├── ValueNotAllowed         value-not-allowed     12
│   └── EncodeLimitExceeded     encode-limit          13
└── DecodeError                 decode                20   bytes are not an allowed value
    ├── BytesMalformed          bytes-malformed       21
    ├── UnknownType             unknown-type          22
    ├── VersionUnknown          version-unknown       23
    ├── ShapeChanged            shape-changed         24
    ├── RuleFailed              rule-failed           25
    ├── DecodeLimitExceeded     decode-limit          26
    └── BlobMismatch            blob-mismatch         27
```

The columns are class, code and exit status. Codes and exit statuses are stable: scripts may
branch on them. A message names the thing, what was expected and what was found; it never
carries the payload or a key. `KeyboardInterrupt` and `MemoryError` are never caught or renamed.
"""

from typing import ClassVar

__all__ = [
    "BlobMismatch",
    "BytesMalformed",
    "DecodeError",
    "DecodeLimitExceeded",
    "EncodeError",
    "EncodeLimitExceeded",
    "IdMalformed",
    "LimitInvalid",
    "ObjectNotFound",
    "RuleFailed",
    "RuleInvalid",
    "SealpointError",
    "ShapeChanged",
    "TypeNotAllowed",
    "UnknownType",
    "UsageError",
    "ValueNotAllowed",
    "VersionUnknown",
]


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

    def as_dict(self) -> dict[str, str | int]:
        """The one JSON shape of an error: what `--json` prints."""
        return {
            "code": self.code,
            "exit_status": self.exit_status,
            "message": str(self),
            "hint": self.hint,
        }


class UsageError(SealpointError):
    """The call itself is wrong."""

    code = "usage"
    exit_status = 2
    hint = "Correct the call as the message says."


class IdMalformed(UsageError):
    """A text is not an id of the kind that was asked for."""

    code = "id-malformed"
    hint = "Copy the id exactly as it was printed: prefix, colon, lower-case hexadecimal digits."


class LimitInvalid(UsageError):
    """A limit was set to something that cannot be a bound."""

    code = "limit-invalid"
    hint = "Limits are whole numbers within the bounds that the reference lists."


class ObjectNotFound(UsageError):
    """The command line was given a MODULE:OBJECT that does not exist."""

    code = "object-not-found"
    hint = "Write MODULE:OBJECT, with the module importable from the current directory."


class RuleInvalid(UsageError):
    """A type rule cannot be made as it was asked for."""

    code = "rule-invalid"
    hint = "Give the type a unique name and version, or a pair of encode= and decode= functions."


class EncodeError(SealpointError):
    """A value cannot be saved as it is."""

    code = "encode"
    exit_status = 10
    hint = "Registry.explain(value) lists everything in a value that cannot be saved."


class TypeNotAllowed(EncodeError):
    """A value holds an object of a type that no rule allows."""

    code = "type-not-allowed"
    exit_status = 11
    hint = "Allow the type with registry.allow(...), or turn the value into plain data."


class ValueNotAllowed(EncodeError):
    """The type is allowed, this value of it has no lossless form."""

    code = "value-not-allowed"
    exit_status = 12
    hint = "Change the value as the message says, or give its type encode= and decode=."


class EncodeLimitExceeded(EncodeError):
    """A value is larger or deeper than the limits allow."""

    code = "encode-limit"
    exit_status = 13
    hint = "Make the value smaller, or raise the named limit in Registry(limits=Limits(...))."


class DecodeError(SealpointError):
    """Bytes are not a value that the registry allows; nothing was built.

    Attributes:
        within: Names of the application types the fault lay inside, innermost first.
    """

    code = "decode"
    exit_status = 20
    hint = "Do not use these bytes; find out who wrote them and with which registry."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.within: list[str] = []

    def __str__(self) -> str:
        return self.message + "".join(f", inside {name}" for name in self.within)


class BytesMalformed(DecodeError):
    """Bytes do not follow the value format."""

    code = "bytes-malformed"
    exit_status = 21


class UnknownType(DecodeError):
    """Bytes name a tag or a type that no rule allows."""

    code = "unknown-type"
    exit_status = 22
    hint = "If your application wrote this, allow the type under the name in the message."


class VersionUnknown(DecodeError):
    """Bytes hold a version of a type that the rule neither is nor upgrades from."""

    code = "version-unknown"
    exit_status = 23
    hint = "Give the rule an upgrade={version: function} for the stored version."


class ShapeChanged(DecodeError):
    """A class changed its fields or annotations and kept its version."""

    code = "shape-changed"
    exit_status = 24
    hint = "Raise version= in the rule and add upgrade={old_version: function}."


class RuleFailed(DecodeError):
    """A rule's own function (decode, upgrade or a validating constructor) failed."""

    code = "rule-failed"
    exit_status = 25
    hint = "The cause is chained to this error; the function is the application's own."


class DecodeLimitExceeded(DecodeError):
    """Bytes ask for more than the limits allow."""

    code = "decode-limit"
    exit_status = 26
    hint = "If the value is genuine, raise the named limit in Registry(limits=Limits(...))."


class BlobMismatch(DecodeError):
    """A blob of a tree is missing, or is not the one its id names."""

    code = "blob-mismatch"
    exit_status = 27
    hint = "The blob store lost or changed data; restore it from a good copy."
