# SPDX-License-Identifier: Apache-2.0
"""Loading a file of torch, or a pickle, as data and nothing else.

`load_pt` returns the meaning of the file by a closed table, built here from bytes that were read
here. No name in the file is imported or called, and none of torch's file readers is used. The whole
file is judged before the first tensor is created; there is no retry with weaker checks.

It refuses files of other formats, values other than tensors and plain data unless its caller asks
for `Inert`, and several things that torch's own loader accepts: see the tests in
`tests/attacks/models`. The caller opens the file and decides whether it is the right one.
"""

import functools
import io
import sys
from typing import Any

from sealpoint.errors import ModelError, ModelUnreadable
from sealpoint_models._device_placement import Placing
from sealpoint_models._optional_packages import require_torch, without_torch_modes
from sealpoint_models._tensor_maker import StorageMaker
from sealpoint_models.scan import FilePlace, Tensors, Unknown, read_meaning, read_wrapping


def read_at(file: io.FileIO, offset: int, length: int, what: str) -> bytes:
    """The bytes of a file at an offset; fewer only where the file ends.

    Raises:
        ModelUnreadable: The file cannot be read.
    """
    parts: list[bytes] = []
    try:
        file.seek(offset)
        while length > 0 and (part := file.read(length)):
            parts.append(part)
            length -= len(part)
    except OSError as exc:
        raise ModelUnreadable(f"{what}: expected to read it, found {exc.strerror}") from exc
    return parts[0] if len(parts) == 1 else b"".join(parts)


def load_pt(
    file: io.FileIO, size: int, what: str, map_location: Any, unknown: Unknown = "refuse"
) -> Any:
    """Load a file that `torch.save` wrote, or a pickle.

    Verification, in order: (1) the wrapping, and the pickle in it as symbols; (2) the meaning of
    all symbols, without tensors; then (3) the same once more, with tensors in our own memory.

    Args:
        file: A regular file, opened unbuffered; nothing else may move its position during the call.
        size: Its size when it was opened.
        what: The name of the file, for messages.
        map_location: As of `torch.load`.
        unknown: The treatment of names that are in no table.

    Raises:
        FormatRefused: It is in another format.
        RecordCompressed: A part of it is compressed.
        RecordMismatch: A part of it has another size than is declared for it.
        GlobalNotAllowed: It names something other than tensors and plain data.
        SparseInvalid: Indices of a sparse tensor are wrong.
        ModelLimitExceeded: It asks for more than a model file may.
        ModelMalformed: It is damaged, or was written by a program other than torch and pickle.
        ModelUnreadable: The file cannot be read.
        ModelError: A device cannot take its tensors.
        UsageError: `map_location` is not a place.
        ExtraMissing: Torch is not installed.
    """
    # (1) The structure, which is not read again: the judged symbols are the ones in use.
    wrapping = read_wrapping(lambda at, length: read_at(file, at, length, what), size, what)
    read = functools.partial(
        read_meaning,
        wrapping.program,
        storages=wrapping.sizes,
        file_bytes=size,
        what=what,
        unknown=unknown,
        beside=wrapping.beside,
        tensors=Tensors(wrapping.sizes, size, what, views=wrapping.views),
    )
    # (2) Errors, before the file costs memory.
    read()
    # (3) Only elements of tensors come from the file now, which are numbers and decide nothing.
    torch = require_torch()
    with without_torch_modes(torch):
        maker = StorageMaker(
            torch,
            lambda key: storage_memory(torch, wrapping.storages[key], what, file),
            Placing(torch, map_location, what),
            swapped=wrapping.is_big_endian != (sys.byteorder == "big"),
            what=what,
        )
        return read(maker=maker, again=True)


def storage_memory(torch: Any, place: FilePlace, what: str, file: io.FileIO | None = None) -> Any:
    """The bytes of a storage, in our own memory: never mapped, since a mapping can change."""
    source = io.BytesIO(place.data or b"") if file is None or place.data is not None else file
    memory = torch.empty(place.size, dtype=torch.uint8, device="cpu")
    try:
        target, done = memoryview(memory.numpy()), 0
    except RuntimeError as exc:
        raise ModelError(
            f"{what}: expected memory for its tensors, found a mode of torch without memory",
            hint="Load it outside of FakeTensorMode and the like.",
        ) from exc
    try:
        source.seek(place.offset)
        while done < place.size and (count := source.readinto(target[done:])):
            done += count
        found = "its end"
    except OSError as exc:
        found = str(exc.strerror)
    if done != place.size:
        raise ModelUnreadable(
            f"{what}: expected {place.size} bytes at {place.offset}, found {found}"
        )
    return memory


def load_trusted(path: Any, map_location: Any) -> Any:
    """Load a file that may run code: only for files that you wrote yourself, and kept.

    None of the checks of `load_pt` apply. Anyone who could write to the file, or to a copy on its
    way here, decides what this process does next.
    """
    require_torch()
    import torch  # noqa: PLC0415 - an optional dependency; imported here by name for scanners to see

    # The one call that is unsafe on purpose; the caller requested it by name.
    return torch.load(path, map_location=map_location, weights_only=False)  # nosec B614
