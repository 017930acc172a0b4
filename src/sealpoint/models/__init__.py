# SPDX-License-Identifier: Apache-2.0
"""Model files: load without running code, save without pickle, know who wrote it.

`load_checkpoint` and `save_checkpoint` take the place of `torch.load` and `torch.save`. The file
is specified in `docs/formats/model-file.md`. Importing this package needs neither torch nor
blake3; using it does.
"""

from sealpoint.models._checkpoint import (
    UnsafeLoadWarning,
    load_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from sealpoint.models._file import FileDigests
from sealpoint.models._manifest import SealedFile, sealed_files
from sealpoint.models._model_file import ModelFile
from sealpoint.models._safetensors import Tensor

__all__ = [
    "FileDigests",
    "ModelFile",
    "SealedFile",
    "Tensor",
    "UnsafeLoadWarning",
    "load_checkpoint",
    "open_checkpoint",
    "save_checkpoint",
    "sealed_files",
]
