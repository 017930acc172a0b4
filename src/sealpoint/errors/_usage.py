# SPDX-License-Identifier: Apache-2.0
"""The call itself is wrong."""

from sealpoint.errors._root import SealpointError

__all__ = [
    "IdMalformed",
    "LimitInvalid",
    "NameInvalid",
    "ObjectNotFound",
    "RuleInvalid",
    "UrlInvalid",
    "UsageError",
]


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


class NameInvalid(UsageError):
    """A thread, namespace, identity or checkpoint cannot be called this."""

    code = "name-invalid"
    hint = "Names are printable text of at most 512 bytes, without a space at either end."


class UrlInvalid(UsageError):
    """A store URL is not one that Sealpoint knows."""

    code = "url-invalid"
    hint = "Write memory:, sqlite:///relative.db, sqlite:////absolute.db or file:///absolute/dir."
