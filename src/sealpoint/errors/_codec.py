# SPDX-License-Identifier: Apache-2.0
"""A value cannot be saved, or bytes are not an allowed value."""

from sealpoint.errors._root import SealpointError

__all__ = [
    "BlobMismatch",
    "BytesMalformed",
    "DecodeError",
    "DecodeLimitExceeded",
    "EncodeError",
    "EncodeLimitExceeded",
    "RuleFailed",
    "ShapeChanged",
    "TypeNotAllowed",
    "UnknownType",
    "ValueNotAllowed",
    "VersionUnknown",
]


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
