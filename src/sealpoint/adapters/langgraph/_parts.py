# SPDX-License-Identifier: Apache-2.0
"""What the nodes of a graph consist of: functions, tools, models, prompts and other graphs.

Found by looking, never by calling: from a node's runnable through the steps, closures, defaults,
partials, methods and the global names that its functions use. What an application looks up in
another way (a registry, a file, a request) cannot be seen. Secrets are not looked at: models are
not entered, and of functions only their code counts.
"""

import functools
import inspect
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import SystemMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.tools import BaseTool
from langgraph.func import _TaskFunction
from langgraph.pregel import Pregel

from sealpoint.adapters.langgraph._function_code import (
    FRAMEWORKS,
    Identical,
    code_name,
    function_digest,
    package_of,
)
from sealpoint.adapters.langgraph._memory import PLAIN, Memory
from sealpoint.config import imported_name
from sealpoint.errors import WorldInvalid

__all__ = ["TASK", "Model", "Parts", "parts_of"]

TASK = "task."
"""What the places of tasks of the functional API begin with."""

_PARTS = (
    *(BaseLanguageModel, BasePromptTemplate, BaseTool, Pregel, Runnable, SystemMessage),
    *(_TaskFunction, functools.partial, types.FunctionType, types.MethodType),
)
_VISITS_MAX = 20_000
_CODE_MAX = 8_192
"""How many functions are remembered with the names that they use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model, and what it was bound with."""

    model: BaseLanguageModel[Any]
    bound: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What was found, each list in the order of finding."""

    code: dict[str, list[str]] = field(default_factory=dict)
    """For each place and function there (`node.agent: answer`, `tool.search: search`), and for all
    functions of frameworks at a place (`node.agent`), the digests of the code, each once."""
    functions: list[tuple[str, types.FunctionType]] = field(default_factory=list)
    """The application's functions, each with its place."""
    tools: list[BaseTool] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)
    prompts: list[Any] = field(default_factory=list)
    graphs: list[Pregel[Any, Any, Any, Any]] = field(default_factory=list)


def parts_of(root: Any, place: str, memory: Memory | None = None) -> Parts:
    """Find what something that a graph runs consists of.

    Args:
        root: A runnable, a function, or anything else that a graph runs.
        place: What its code is called.
        memory: What an application's own objects held at an earlier look.

    Raises:
        WorldInvalid: It is too large to be looked through.
    """
    search = _Search(memory or Memory())
    search.add([root], place, "")
    search.run()
    return search.parts


@functools.lru_cache(maxsize=_CODE_MAX)
def _global_names(compiled: Identical) -> tuple[str, ...]:
    """The names that code may look up, each once."""
    return tuple(dict.fromkeys(_names_used(compiled.value)))


def _names_used(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_used(constant)


class _Waiting(NamedTuple):
    """Something that is to be looked at."""

    value: Any
    place: str
    package: str
    """Code or an object of this package refers to it."""
    own: bool
    """Whether it is the application that holds it, and not the framework."""


_FORMS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((type, types.ModuleType), ""),
    (Pregel, "_graph"),
    (BaseTool, "_tool"),
    (BaseLanguageModel, "_model"),
    ((SystemMessage, BasePromptTemplate), "_prompt"),
    (RunnableBindingBase, "_binding"),
    (types.FunctionType, "_function"),
    (types.MethodType, "_method"),
    (functools.partial, "_partial"),
    (_TaskFunction, "_task"),
    (Mapping, "_mapping"),
    ((list, tuple), "_sequence"),
    (Runnable, "_runnable"),
)
"""How objects of a class are looked at, the first that fits; not at all if there is no name."""


@functools.lru_cache(maxsize=_CODE_MAX)
def _form_of(kind: type) -> str:
    return next((name for classes, name in _FORMS if issubclass(kind, classes)), "_other")


class _Search:
    """One search under way."""

    def __init__(self, memory: Memory) -> None:
        self.parts = Parts()
        self._memory = memory
        self._waiting: deque[_Waiting] = deque()
        self._seen: dict[int, Any] = {}

    def add(self, values: Iterable[Any], place: str, package: str, *, own: bool = False) -> None:
        """Look at these later."""
        for value in values:
            if type(value) not in PLAIN:
                self._waiting.append(_Waiting(value, place, package, own))

    def run(self) -> None:
        waiting, seen = self._waiting, self._seen
        while waiting:
            found = waiting.popleft()
            value = found.value
            kind: Any = type(value)
            form = _form_of(kind)
            if not form or id(value) in seen:
                continue
            # What was seen is kept, or another object could get its identity.
            seen[id(value)] = value
            if len(seen) > _VISITS_MAX:
                raise WorldInvalid(
                    f"{found.place}: expected at most {_VISITS_MAX} objects to look through, found "
                    "more",
                    hint="Give the graph's world yourself with world=.",
                )
            getattr(self, form)(*found)

    def _graph(self, value: Any, _place: str, _package: str, _own: bool) -> None:  # noqa: FBT001
        self.parts.graphs.append(value)

    def _model(self, value: Any, _place: str, _package: str, _own: bool) -> None:  # noqa: FBT001
        self.parts.models.append(Model(model=value, bound={}))

    def _prompt(self, value: Any, _place: str, _package: str, _own: bool) -> None:  # noqa: FBT001
        self.parts.prompts.append(value)

    def _method(self, value: Any, place: str, package: str, _own: bool) -> None:  # noqa: FBT001
        self.add([value.__func__], place, package)
        # The object that a node is a method of belongs to the application, like the method.
        if isinstance(value.__self__, tuple):
            self.add(value.__self__, place, package_of(type(value.__self__)))
        self._object(value.__self__, place)

    def _partial(self, value: Any, place: str, package: str, _own: bool) -> None:  # noqa: FBT001
        self.add([value.func, value.args, value.keywords], place, package)

    def _task(self, value: Any, _place: str, package: str, _own: bool) -> None:  # noqa: FBT001
        self.add([value.func], _task_place(value), package)

    def _mapping(self, value: Any, place: str, package: str, own: bool) -> None:  # noqa: FBT001
        self._collection(value, dict(value), place, package, own=own)

    def _sequence(self, value: Any, place: str, package: str, own: bool) -> None:  # noqa: FBT001
        self._collection(value, dict(enumerate(value)), place, package, own=own)

    def _runnable(self, value: Any, place: str, _package: str, _own: bool) -> None:  # noqa: FBT001
        self._object(value, place)
        self._methods(value, place)

    def _other(self, value: Any, place: str, package: str, own: bool) -> None:  # noqa: FBT001
        """Any other object, if it is of the package that refers to it."""
        if package and package_of(type(value)) == package and package not in FRAMEWORKS:
            self._runnable(value, place, package, own)

    def _collection(
        self, owner: Any, slots: dict[Any, Any], place: str, package: str, *, own: bool
    ) -> None:
        if own:
            slots = self._memory.held(owner, slots, _PARTS)
        self.add(slots.values(), place, package, own=own)

    def _object(self, owner: Any, place: str) -> None:
        """What an object holds: all of it, if it is the framework's."""
        slots, package = _attributes(owner), package_of(type(owner))
        own = package not in FRAMEWORKS
        if own:
            slots = self._memory.held(owner, slots)
        self.add(slots.values(), place, package, own=own)

    def _tool(self, tool: BaseTool, _place: str, _within: str, _own: bool) -> None:  # noqa: FBT001
        """A tool, and what runs when it is called."""
        self.parts.tools.append(tool)
        place, package = f"tool.{tool.name}", package_of(type(tool))
        found = [getattr(tool, "func", None), getattr(tool, "coroutine", None)]
        if any(found):
            self.add(found, place, package)
            return
        methods = (inspect.getattr_static(type(tool), name, None) for name in ("_run", "_arun"))
        own = [method for method in methods if package_of(method) not in FRAMEWORKS]
        self.add(own, place, package)
        self._object(tool, place)

    def _methods(self, value: Any, place: str) -> None:
        """The code of an application's own callable object."""
        if package_of(type(value)) in FRAMEWORKS:
            return
        for name in ("__call__", "invoke", "ainvoke"):
            method = inspect.getattr_static(type(value), name, None)
            if isinstance(method, types.FunctionType) and package_of(method) not in FRAMEWORKS:
                self.add([method], place, package_of(method))

    def _binding(self, value: Any, place: str, package: str, _own: bool) -> None:  # noqa: FBT001
        bound: dict[str, Any] = {}
        inner = value
        while isinstance(inner, RunnableBindingBase):
            bound = {**inner.kwargs, **bound}
            inner = inner.bound
        if isinstance(inner, BaseLanguageModel):
            self.parts.models.append(Model(model=inner, bound=bound))
        else:
            self.add([inner], place, package)
        self.add([bound.get("tools")], place, package)

    def _function(
        self,
        function: types.FunctionType,
        place: str,
        _within: str,
        _own: bool,  # noqa: FBT001
    ) -> None:
        package = package_of(function)
        if package not in FRAMEWORKS:
            self.parts.functions.append((place, function))
        digest = function_digest(function)
        found = self.parts.code.setdefault(code_name(place, function), [])
        if digest not in found:
            found.append(digest)
        self.add(function.__defaults__ or (), place, package)
        self.add((function.__kwdefaults__ or {}).values(), place, package)
        self.add([getattr(function, "__wrapped__", None)], place, package)
        if package in FRAMEWORKS:
            self.add(_cells(function).values(), place, package)
            return  # its version says what it does
        self.add(self._memory.held(function, _cells(function)).values(), place, package, own=True)
        names = _global_names(Identical(function.__code__))
        found_there = {name: function.__globals__.get(name) for name in names}
        for value in self._memory.held(function.__code__, found_there).values():
            if isinstance(value, types.FunctionType):
                if package_of(value) == package:
                    module = imported_name(value.__module__)
                    self.add([value], f"function.{module}.{value.__qualname__}", package)
            else:
                self.add([value], place, package, own=True)


def _task_place(task: Any) -> str:
    """Which task it is: where its function is defined, and what the framework calls it."""
    function = task.func
    module, given = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    name = getattr(function, "__qualname__", "") or type(function).__qualname__
    if given and name.rpartition(".")[2] != given:
        name = f"{name}.{given}"
    return f"{TASK}{imported_name(module)}.{name}"


def _cells(function: types.FunctionType) -> dict[int, Any]:
    found = {}
    for place, cell in enumerate(function.__closure__ or ()):
        try:
            found[place] = cell.cell_contents
        except ValueError:
            continue  # nothing was put into it yet
    return found


def _attributes(value: Any) -> dict[str, Any]:
    found = getattr(value, "__dict__", None)
    return dict(found) if isinstance(found, dict) else {}
