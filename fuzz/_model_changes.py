# SPDX-License-Identifier: Apache-2.0
"""New model files from old ones: by their nodes, entries, metadata, tokens, JSON and bytes.

Most changes are made to a sketch, which is then written in the canonical form; the rest stray from
the format in a chosen way.
"""

import contextlib
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fuzz._model_headers import changed_bytes, changed_header, changed_length
from fuzz._model_sketch import Part, Sketch, sketch_of
from fuzz._model_trees import TreeChanger
from fuzz._model_words import ELEMENTS, NAMES, Words
from fuzz._mutate import Mutator
from fuzz._seeds import known_labels
from fuzz._tokens import parse
from sealpoint.errors import SealpointError
from sealpoint_models import _structure_nodes

__all__ = ["FileChanger"]

_POOL_MAX = 2000
_CASE_BYTES_MAX = 1 << 16
_Parsed = tuple[bytes, Sketch | None]
_REGISTRY = _structure_nodes._REGISTRY  # noqa: SLF001 - the closed list of what a structure may hold


class FileChanger:
    """Makes new files from old ones.

    Args:
        rng: Where all choices come from.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._trees = TreeChanger(rng, Words(rng))
        self._tokens = Mutator(rng, known_labels(_REGISTRY))
        self._pool: list[_Parsed] = []
        self._part_changes: tuple[Callable[[Sketch], None], ...] = (
            *(self._other_bytes, self._other_bytes, self._other_shape, self._other_element),
            *(self._other_name, self._without, self._another, self._other_metadata),
        )

    def parse(self, data: bytes) -> _Parsed:
        """The bytes, and the sketch if there is one."""
        sketch = sketch_of(data)
        if sketch is not None and sketch.structure:
            self._tokens.learn(parse(sketch.structure))
        parsed = data, sketch
        if len(self._pool) < _POOL_MAX:
            self._pool.append(parsed)
        else:
            self._pool[self._rng.randrange(_POOL_MAX)] = parsed
        return parsed

    def changed(self, parsed: _Parsed) -> bytes:
        """A new file."""
        rng = self._rng
        data, sketch = parsed
        way = rng.random()
        if sketch is not None and way < 0.85:
            changed = sketch.copy()
            if way < 0.5 and changed.structure is not None:
                self._change_tree(changed)
            elif way < 0.62 and changed.structure:
                root = parse(changed.structure)
                changed.structure = self._tokens.changed(0, [(b"", root)]).data
            elif way < 0.68:
                self._splice(changed)
            else:
                for _ in range(rng.choice((1, 1, 2, 3))):
                    rng.choice(self._part_changes)(changed)
            data = _written(changed) or data
            if rng.random() < 0.93:
                return data[:_CASE_BYTES_MAX]
        match rng.randrange(8):
            case 0:
                data = changed_length(data, rng)
            case 1 | 2 | 3:
                data = changed_bytes(data, rng, rng.choice(self._pool)[0])
            case _:
                data = changed_header(data, rng)
        return data[:_CASE_BYTES_MAX]

    # The structure.

    def _change_tree(self, sketch: Sketch) -> None:
        tree = _tree(sketch)
        if tree is None:
            return
        with contextlib.suppress(AttributeError, RuntimeError, TypeError, ValueError):
            self._trees.changed(tree, sketch)  # a field may be of any type, and unfit for a change
        structure = _encoded(tree[0])
        if structure is not None:
            sketch.structure = structure

    def _splice(self, sketch: Sketch) -> None:
        """The tensors of another file beside the own ones, and its structure beside the own."""
        _, other = self._rng.choice(self._pool)
        if other is None:
            return
        taken = {part.name for part in sketch.parts}
        sketch.parts += [part for part in other.parts if part.name not in taken]
        own, foreign = _tree(sketch), _tree(other)
        if own is not None and foreign is not None:
            structure = _encoded([own[0], foreign[0]])
            sketch.structure = sketch.structure if structure is None else structure

    # Entries and metadata.

    def _place(self, sketch: Sketch) -> int:
        if not sketch.parts:
            self._another(sketch)
        return self._rng.randrange(len(sketch.parts))

    def _other_bytes(self, sketch: Sketch) -> None:
        place = self._place(sketch)
        part, rng = sketch.parts[place], self._rng
        data = bytearray(part.data or b"\0")
        for _ in range(rng.choice((1, 2, 8))):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 127, 128, 255))
        sketch.parts[place] = replace(part, data=bytes(data))

    def _other_shape(self, sketch: Sketch) -> None:
        place, rng = self._place(sketch), self._rng
        part = sketch.parts[place]
        shape = list(part.shape)
        match rng.randrange(6):
            case 0:
                rng.shuffle(shape)
            case 1:
                shape.insert(rng.randrange(len(shape) + 1), 1)
            case 2 if shape:
                del shape[rng.randrange(len(shape))]
            case 3 if shape:
                shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 5, 16))
            case 4:
                shape = [
                    0,
                    *(rng.choice((1 << 20, 1 << 61, 1 << 62, (1 << 63) - 1)) for _ in range(2)),
                ]
                rng.shuffle(shape)
            case _:
                shape = [1] * rng.choice((0, 7, 63, 64, 65))
        sketch.parts[place] = replace(part, shape=tuple(shape))

    def _other_element(self, sketch: Sketch) -> None:
        place = self._place(sketch)
        element = self._rng.choice(ELEMENTS)
        sketch.parts[place] = replace(sketch.parts[place], element=element)

    def _other_name(self, sketch: Sketch) -> None:
        place = self._place(sketch)
        sketch.parts[place] = replace(sketch.parts[place], name=self._rng.choice(NAMES))

    def _without(self, sketch: Sketch) -> None:
        del sketch.parts[self._place(sketch)]

    def _another(self, sketch: Sketch) -> None:
        rng = self._rng
        shape = tuple(rng.randrange(4) for _ in range(rng.randrange(4)))
        part = Part(name=rng.choice(NAMES), element=rng.choice(ELEMENTS), shape=shape, data=b"\1")
        sketch.parts.append(part)

    def _other_metadata(self, sketch: Sketch) -> None:
        rng = self._rng
        match rng.randrange(5):
            case 0:
                sketch.metadata[rng.choice(NAMES)] = rng.choice(NAMES)
            case 1 if sketch.metadata:
                del sketch.metadata[rng.choice(list(sketch.metadata))]
            case 2:
                sketch.structure = None if sketch.structure is not None else b"\xc0"
            case 3:
                sketch.metadata["sealpoint.version"] = rng.choice(("1", "2", "", "one"))
            case _:
                sketch.metadata["format"] = rng.choice(("pt", "np", "", "tf"))


def _tree(sketch: Sketch) -> list[Any] | None:
    """The structure as nodes, as the one member of a list."""
    if sketch.structure is None:
        return None
    try:
        return [_REGISTRY.decode(sketch.structure)]
    except SealpointError:
        return None


def _encoded(tree: Any) -> bytes | None:
    try:
        return _REGISTRY.encode(tree)
    except (SealpointError, RecursionError):
        return None


def _written(sketch: Sketch) -> bytes | None:
    try:
        return bytes(sketch)
    except UnicodeEncodeError:
        return None
