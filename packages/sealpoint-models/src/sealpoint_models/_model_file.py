# SPDX-License-Identifier: Apache-2.0
"""An open safetensors file: its content, one tensor of it, all of it.

The order of a load, numbered below: (1) the header's bytes against the digest that the thread
holds, (2) the header against the format, (3) the tensors' bytes, hashed while they are read,
(4) their digests, (5) the structure, (6) tensors. Without a thread, (1) and (4) are left out.
"""

from collections.abc import Iterable
from typing import Any, Self

from sealpoint.errors import ModelError, ModelMalformed, UsageError
from sealpoint.store import CheckpointRef
from sealpoint_models._device_placement import MapLocation, Placing
from sealpoint_models._device_staging import DeviceMemory
from sealpoint_models._file_manifest import Vouched
from sealpoint_models._file_reader import (
    FileDigests,
    HostMemory,
    Nowhere,
    Progress,
    ReadFile,
    header_digest,
)
from sealpoint_models._optional_packages import require_torch, without_torch_modes
from sealpoint_models._state_building import build_plain, build_state, plain_tensor
from sealpoint_models._structure_nodes import METADATA, STRUCTURE, read_structure
from sealpoint_models.scan._safetensors import ModelHeader, Tensor, read_header, write_header


class ModelFile:
    """An open safetensors file. `open_checkpoint` makes one; use it in a `with` block.

    With a thread, nothing in the file is used before its digest was compared with the digest in the
    thread.
    """

    def __init__(self, file: ReadFile, sealed: Vouched | None = None) -> None:
        self._file = file
        self._sealed = sealed
        raw = self._header_bytes()  # (1)
        self._header = _parsed(raw, file)  # (2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Tensors that were loaded stay."""
        self._file.close()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the file, in its order: names, types, shapes and places."""
        return tuple(self._header.tensors.values())

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata texts of the header, without the structure."""
        return {key: text for key, text in self._header.metadata.items() if key != STRUCTURE}

    @property
    def has_structure(self) -> bool:
        """Whether `save_checkpoint` wrote it, so that it holds a whole state."""
        return STRUCTURE in self._header.metadata

    @property
    def structure(self) -> str | None:
        """The text of the structure, as the header has it; None in a file of another writer."""
        return self._header.metadata.get(STRUCTURE)

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return self._file.size

    @property
    def ref(self) -> CheckpointRef | None:
        """The checkpoint that vouches for the file; None without a thread."""
        return None if self._sealed is None else self._sealed.ref

    def digests(self, progress: Progress | None = None) -> FileDigests:
        """The digests of the file, from its bytes.

        Args:
            progress: Called occasionally with the number of bytes done so far, and their total.

        Raises:
            Edited, FileNotSealed: With a thread: they differ from its digests.
        """
        found = self._file.read_tensors(self.tensors, Nowhere(), hashing=True, progress=progress)
        self._verify(self.tensors, found)
        return FileDigests(size=self.size, header=header_digest(self._header.raw), tensors=found)

    def tensor(self, name: str, map_location: MapLocation = "cpu") -> Any:
        """One tensor, as the header describes it; the others are not read.

        Args:
            name: Its name in the file.
            map_location: Where it goes.

        Raises:
            UsageError: The file has no tensor of this name.
            Edited: With a thread: it differs from the saved tensor.
        """
        tensor = self._named(name)
        torch = require_torch()
        placing = Placing(torch, map_location, self._file.what)
        memory = self._read([tensor], torch, placing)
        return plain_tensor(torch, tensor, memory[name], placing, self._file.what)

    def verify_tensor(self, name: str) -> bytes:
        """The digest of one tensor; the others are not read. Errors are those of `tensor`."""
        tensor = self._named(name)
        found = self._file.read_tensors([tensor], Nowhere(), hashing=True)
        self._verify([tensor], found)
        return found[name]

    def load(self, map_location: MapLocation = "cpu") -> Any:
        """All of it: the state that was saved, or the tensors by name.

        Args:
            map_location: Where tensors go, as for `torch.load`.

        Raises:
            ModelError: The file breaks a rule of its format.
            Edited: With a thread: it differs from the saved file.
        """
        torch = require_torch()
        placing = Placing(torch, map_location, self._file.what)
        memory = self._read(self.tensors, torch, placing)
        what = self._file.what
        # (5) The structure.
        text = self._header.metadata.get(STRUCTURE)
        # (6) Tensors.
        if text is None:
            return build_plain(torch, self._header, memory, placing, what)
        structure = read_structure(text, what)
        with without_torch_modes(torch):
            return build_state(
                torch, structure, header=self._header, memory=memory, placing=placing, what=what
            )

    def _named(self, name: str) -> Tensor:
        tensor = self._header.tensors.get(name)
        if tensor is None:
            raise UsageError(
                f"{self._file.what}: there is no tensor named {name!r}",
                hint="sealpoint model inspect FILE lists the names.",
            )
        return tensor

    def _header_bytes(self) -> bytes:
        """The bytes of the header, verified."""
        sealed = self._sealed
        try:
            raw = self._file.read_header()
        except ModelError as exc:
            raise exc if sealed is None else self._refusal(sealed) from exc
        if sealed is not None and (
            self.size != sealed.digests.size or header_digest(raw) != sealed.digests.header
        ):
            raise self._refusal(sealed)
        return raw

    def _read(self, tensors: Iterable[Tensor], torch: Any, placing: Placing) -> dict[str, Any]:
        """The bytes of tensors, verified, each in memory of its own."""
        wanted = list(tensors)
        # Straight to where they go, if that is one CUDA device for all.
        device = placing.cuda
        try:
            # The default device and modes of the caller have no effect.
            memory = {
                tensor.name: torch.empty(tensor.size, dtype=torch.uint8, device=device or "cpu")
                for tensor in wanted
            }
            target = self._target(torch, memory, device)
        except RuntimeError as exc:
            raise ModelError(
                f"{self._file.what}: there is not enough memory for its tensors",
                hint="Free memory, or load it on a larger machine.",
            ) from exc
        # (3) Their bytes.
        found = self._file.read_tensors(wanted, target, hashing=self._sealed is not None)
        if isinstance(target, DeviceMemory):
            target.finish()
        # (4) Their digests.
        if self._sealed is not None:
            self._verify(wanted, found)
        return memory

    @staticmethod
    def _target(torch: Any, memory: dict[str, Any], device: Any) -> HostMemory | DeviceMemory:
        if device is not None:
            return DeviceMemory(torch, memory, device)
        return HostMemory({name: memoryview(tensor.numpy()) for name, tensor in memory.items()})

    def _verify(self, tensors: Iterable[Tensor], found: dict[str, bytes]) -> None:
        if self._sealed is None:
            return
        expected = self._sealed.digests.tensors
        if any(found[tensor.name] != expected.get(tensor.name) for tensor in tensors):
            raise self._refusal(self._sealed)

    def _refusal(self, sealed: Vouched) -> Exception:
        """Why the file is not the one that the thread vouches for, from all of its bytes."""
        try:
            found: FileDigests | None = digests_of_file(self._file)
        except ModelError:
            found = None
        return sealed.refusal(found, self._file.what)


def digests_of_file(file: ReadFile, progress: Progress | None = None) -> FileDigests:
    """The digests of a file, without comparing them with a thread."""
    raw = file.read_header()
    header = _parsed(raw, file)
    tensors = file.read_tensors(header.tensors.values(), Nowhere(), hashing=True, progress=progress)
    return FileDigests(size=file.size, header=header_digest(raw), tensors=tensors)


def _parsed(raw: bytes, file: ReadFile) -> ModelHeader:
    header = read_header(raw, file.size, file.what)
    if STRUCTURE in header.metadata:
        # In a file of a later version, the structure may have another meaning.
        if header.metadata != {**METADATA, STRUCTURE: header.metadata[STRUCTURE]}:
            raise ModelMalformed(f"{file.what}: expected the metadata of version 1 of the format")
        parts = [(tensor.name, tensor.element, tensor.shape) for tensor in header.tensors.values()]
        if write_header(parts, header.metadata).raw != raw:
            raise ModelMalformed(f"{file.what}: expected the one header that its tensors have")
    return header
