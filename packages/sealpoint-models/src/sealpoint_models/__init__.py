# SPDX-License-Identifier: Apache-2.0
"""Model files: load without running code, save without pickle, verify who wrote them.

`load_checkpoint` and `save_checkpoint` replace `torch.load` and `torch.save`. The file is specified
in `docs/formats/model-file.md`. Importing this package needs neither torch nor blake3; using it
does.
"""

from sealpoint_models._checkpoint import (
    UnsafeLoadWarning,
    load_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from sealpoint_models._conversion import DroppedValue, convert_checkpoint
from sealpoint_models._file_manifest import SealedFile, sealed_files
from sealpoint_models._file_reader import FileDigests
from sealpoint_models._folder_manifest import SealedFolder, sealed_folders
from sealpoint_models._model_file import ModelFile
from sealpoint_models._sealed_folder import (
    ModelFolder,
    load_folder,
    open_folder,
    seal_file,
    seal_folder,
    verified_copy,
    verify_folder,
)
from sealpoint_models.scan import Inert
from sealpoint_models.scan._safetensors import Tensor

__all__ = [
    "DroppedValue",
    "FileDigests",
    "Inert",
    "ModelFile",
    "ModelFolder",
    "SealedFile",
    "SealedFolder",
    "Tensor",
    "UnsafeLoadWarning",
    "convert_checkpoint",
    "load_checkpoint",
    "load_folder",
    "open_checkpoint",
    "open_folder",
    "save_checkpoint",
    "seal_file",
    "seal_folder",
    "sealed_files",
    "sealed_folders",
    "verified_copy",
    "verify_folder",
]
