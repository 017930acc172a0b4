# SPDX-License-Identifier: Apache-2.0
"""Arrays in a file of joblib: their elements are between the opcodes of the pickle.

Joblib writes a small object in the place of each array, with its type and shape, and right after it
the elements: a byte with the number of padding bytes, the padding, the bytes. An array of objects
is followed by a separate pickle. `ArraySkipper` returns the position where the outer pickle
continues, and passes inner ones to a reader. The small object has to be exactly as joblib writes
it; nothing of it is built.

Joblib before 1.2 wrote no padding: the first element is where a reader that does not know joblib
looks for the next opcode. `bare_elements` has these positions, which the caller judges. Such a
reader also continues into the pickle of an array of objects, with the memo of the outer one:
`objects`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from sealpoint.errors import ModelMalformed
from sealpoint_models.scan._byte_source import Budget
from sealpoint_models.scan._npy import element_count, item_bytes
from sealpoint_models.scan._pickle_symbols import Dict, Global, List, Made, Tuple, Value

WRAPPER = Global("joblib.numpy_pickle", "NumpyArrayWrapper")
_DTYPE, _NDARRAY = Global("numpy", "dtype"), Global("numpy", "ndarray")
_ATTRIBUTES = {"subclass", "shape", "order", "dtype", "allow_mmap"}
_LATER = "numpy_array_alignment_bytes"
"""An attribute that joblib before 1.2 did not have."""
_ALIGNMENT = 16
_TYPE_VALUES_MAX = 10_000
_TYPE_VALUES_A_STEP = 2
_VALUES_A_STEP = 16
"""The number of values that are checked in the time of one step of a budget."""


class ArraySkipper:
    """Skips the elements of the arrays in one pickle."""

    def __init__(self, data: bytes, what: str, budget: Budget, inner: Callable[[int], int]) -> None:
        """Over `data`; `inner` reads a pickle that begins at a position, and returns its end."""
        self._data = data
        self._budget = budget
        self._what = what
        self._inner = inner
        self.bare_elements: list[int] = []
        """The positions of elements without padding."""
        self.objects: list[int] = []
        """The positions of the pickles of arrays of objects."""

    def __call__(self, made: Made, at: int) -> int:
        """The position where the pickle continues after an object got its state.

        Raises:
            ModelMalformed: The state is not one that joblib writes, or elements are missing.
        """
        if made.function != WRAPPER:
            # Joblib takes elements from the file as soon as the object has a state, regardless of
            # its origin.
            self._budget.step(len(made.arguments.values) // _VALUES_A_STEP, self._what)
            if WRAPPER in made.arguments.values:
                raise self._fault("an array that is made as joblib does", at)
            return at
        state = self._state(made.state)
        shape = state.get("shape")
        if type(shape) is not Tuple:
            raise self._fault("the shape of an array", at)
        item, objects = item_bytes(self._type(state.get("dtype"), at), self._what)
        if objects:
            if state.get("allow_mmap") is not False:  # else, the file is taken for their addresses
                raise self._fault("an array of objects that is not mapped into memory", at)
            self.objects.append(at)
            return self._inner(at)
        length = item * element_count(shape.values, self._what)
        alignment = state.get(_LATER)
        if alignment is not None:
            if alignment != _ALIGNMENT or at >= len(self._data):
                raise self._fault("elements aligned as joblib does", at)
            padding = self._data[at]
            if not 0 < padding <= _ALIGNMENT:
                raise self._fault("padding as joblib writes it", at)
            at += 1 + padding
        elif length:
            self.bare_elements.append(at)
        if at + length > len(self._data):
            raise self._fault(f"{length} bytes of elements", at)
        return at + length

    def read(self, made: Made, value: Callable[[Value], Any]) -> None:
        """Check that the object in the place of an array is exactly as joblib writes it.

        Args:
            made: The object.
            value: Returns the meaning of a symbol, or refuses it.

        Raises:
            ModelMalformed: It is not.
        """
        state = self._state(made.state)
        plain = not (made.arguments.values or made.pairs or made.values or made.keywords)
        if (
            not plain
            or state.keys() - {_LATER} != _ATTRIBUTES
            or state["subclass"] != _NDARRAY
            or state["order"] not in ("C", "F")
            or type(state["allow_mmap"]) is not bool
        ):
            raise self._fault("an array as joblib writes it", made.at)
        value(state["dtype"])

    def _state(self, state: Value) -> dict[Any, Value]:
        # Any number of arrays may share one state: a larger one is not read.
        if type(state) is not Dict or len(state.pairs) > len(_ATTRIBUTES) + 1:
            raise self._fault("what joblib says of an array", 0)
        if any(type(key) is not str for key, _ in state.pairs):
            raise self._fault("what joblib says of an array", 0)
        found = dict(state.pairs)
        if len(found) != len(state.pairs):
            raise self._fault("each attribute of an array once", 0)
        return found

    def _type(self, dtype: Value, at: int) -> Any:
        """The type of an array, in the notation of a header of numpy."""
        if not isinstance(dtype, Made) or dtype.function != _DTYPE:
            raise self._fault("the type of an array", at)
        name = dtype.arguments.values[0] if dtype.arguments.values else None
        if type(name) is not str or name[:1] not in "biufcmMOSUV":
            raise self._fault("the type of an array, as numpy writes it", at)
        if name[:1] == "V":
            # The fields of records are in the state, and their sizes are in the name.
            held = dtype.state.values if type(dtype.state) is Tuple else ()
            if self._holds_objects(held):
                raise self._fault("records of numbers and texts", at)
        return name

    def _holds_objects(self, held: Iterable[Value]) -> bool:
        """Whether a type inside of a type is of objects; types inside of that one are refused too.

        Any number of arrays may share a type: each check of it counts.
        """
        stack = [*held]
        for seen in range(_TYPE_VALUES_MAX):
            if not stack:
                self._budget.step(seen // _TYPE_VALUES_A_STEP, self._what)
                return False
            each = stack.pop()
            if isinstance(each, Made):
                name = each.arguments.values[0] if each.arguments.values else None
                if type(name) is not str or name[:1] in "OV":
                    return True
            elif isinstance(each, Tuple | List | Dict):
                stack += each.held()
        return True

    def _fault(self, expected: str, at: int) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}, at byte {at}")
