# SPDX-License-Identifier: Apache-2.0
"""A model file that is not used: nothing of it was run, and nothing of it was returned.

All of them are a `RuntimeError` too, which is what callers of `torch.load` catch.
"""

from sealpoint.errors._root import SealpointError

__all__ = [
    "FileNotSealed",
    "FlagNotHonoured",
    "FormatRefused",
    "GlobalNotAllowed",
    "ModelError",
    "ModelLimitExceeded",
    "ModelMalformed",
    "ModelUnreadable",
    "RecordCompressed",
    "RecordMismatch",
    "SparseInvalid",
]


class ModelError(SealpointError, RuntimeError):
    """A model file cannot be used."""

    code = "model"
    exit_status = 80
    hint = "Do not load this file in another way: find out who wrote it, and with what."


class FlagNotHonoured(ModelError):
    """The `torch.load` of this process does not know `weights_only`, or ignores it."""

    code = "flag-not-honoured"
    exit_status = 81
    hint = "Use torch 2.6 or newer, and find out which package replaces torch.load."


class FormatRefused(ModelError):
    """The file is in a format that cannot be loaded safely, or in none."""

    code = "format-refused"
    exit_status = 82
    hint = "Write it anew as safetensors, on a machine that may run whatever the file holds."


class RecordCompressed(ModelError):
    """A part of the file is compressed, which no torch ever writes."""

    code = "record-compressed"
    exit_status = 83


class RecordMismatch(ModelError):
    """A part of the file has another size than the file declares for it."""

    code = "record-mismatch"
    exit_status = 84


class SparseInvalid(ModelError):
    """The indices of a sparse tensor point outside of it, or are not in order."""

    code = "sparse-invalid"
    exit_status = 85


class ModelLimitExceeded(ModelError):
    """The file asks for more nesting, objects or memory than a model file may."""

    code = "model-limit"
    exit_status = 86


class ModelMalformed(ModelError):
    """The file is not what the specification of its format says."""

    code = "model-malformed"
    exit_status = 87


class GlobalNotAllowed(ModelError):
    """The file names a class or function that is not one of tensors and plain data."""

    code = "global-not-allowed"
    exit_status = 88
    hint = (
        "If you trust who wrote it, convert it once, as docs/models/from-torch-load.md says; "
        "from now on save tensors and plain data, such as state_dict() and vars(args)."
    )


class FileNotSealed(ModelError):
    """No checkpoint of the thread vouches for this file."""

    code = "file-not-sealed"
    exit_status = 89
    hint = "Load the file that this run saved last; sealpoint model list tells them apart."


class ModelUnreadable(ModelError):
    """The file cannot be opened, read or written."""

    code = "model-unreadable"
    exit_status = 90
    hint = "See to the path, its permissions and the space on the disk."
