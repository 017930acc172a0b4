# SPDX-License-Identifier: Apache-2.0
"""What the nodes of a graph consist of: functions, tools, models, prompts and other graphs.

Found by looking, never by calling: from a node's runnable through the steps, closures, defaults,
partials, methods, classes and the global names that its functions use. All code counts that these
lead to in the packages whose functions the framework runs: they are the application. Of another
package that an object or a closure leads to, functions count, and what else a name leads to counts
by its own name. What an application looks up in another way (a file, a request) cannot be seen.
Secrets are not looked at: models are not entered, and texts and numbers that an application holds
do not count.
"""

import dis
import functools
import inspect
import sys
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
    PLAIN,
    Identical,
    Memory,
    class_module,
    code_name,
    function_digest,
    is_of,
    joined_digest,
    outermost,
    package_of,
)
from sealpoint.config import imported_name, module_digest
from sealpoint.errors import WorldInvalid

# What the names in an application's code lead to, found by looking.
#
# Modules and classes are read by their dictionaries: nothing is called or imported, and no
# property, `__getattr__` or metaclass of the application runs. Modules that are imported inside a
# function are read from their files, so that it makes no difference whether somebody imported
# them before.


BUILTINS = (types.BuiltinFunctionType, types.MethodDescriptorType)
"""Code that is not Python's own language, and counts by its name."""

_CODE_MAX = 8_192
"""How many functions are remembered with the names that they use."""
_FILES_MAX = 512
_LEVELS_MAX = 8
"""How many wrappers are taken off: one may say that it wraps itself."""

# As `type` and modules themselves have them, whatever a metaclass or a subclass says.
_bases = type.__dict__["__bases__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_module_namespace = vars(types.ModuleType)["__dict__"].__get__

_HELD: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools.partialmethod: ("func",),
    functools.singledispatchmethod: ("func", "dispatcher"),
    functools._lru_cache_wrapper: ("__wrapped__",),  # noqa: SLF001 - it has no other name
}
"""In which attributes the wrappers of the standard library hold what they wrap."""


def globals_used(function: types.FunctionType, package: str | None) -> dict[str, Any]:
    """What the global names of a function lead to, by name.

    What the code names of a module of the given package is there too, as `module.name`.
    """
    names = _names_of(Identical(function.__code__))
    space = function.__globals__
    found = {name: space[name] for name in names if name in space}
    modules = deque(item for item in found.items() if _is_module_of(item[1], package))
    seen = {id(module) for _, module in modules}
    while modules:
        path, module = modules.popleft()
        inside = _module_namespace(module)
        for name in names:
            if name not in inside:
                continue
            value = found[f"{path}.{name}"] = inside[name]
            if id(value) not in seen and _is_module_of(value, package):
                seen.add(id(value))
                modules.append((f"{path}.{name}", value))
    return found


@functools.lru_cache(maxsize=_CODE_MAX)
def _names_of(compiled: Identical) -> tuple[str, ...]:
    """The names that code may look up, each once."""
    return tuple(dict.fromkeys(name for code in _codes(compiled.value) for name in code.co_names))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_module_of(value: Any, package: str | None) -> bool:
    return issubclass(type(value), types.ModuleType) and outermost(_module_name(value)) == package


def _module_name(module: Any) -> str:
    return _text((_module_namespace(module) or {}).get("__name__"))


def _text(value: Any) -> str:
    return value if type(value) is str else ""


def reference_to(value: Any) -> str | None:
    """The module and name of a function, a class, a builtin or a module; None for all else.

    Of a framework only its outermost package: where in it something lies is its own business.
    """
    kind = type(value)
    if kind is types.FunctionType:
        return _reference(value.__module__, value.__qualname__)
    if issubclass(kind, type):
        return _reference(class_module(value), _qualname(value))
    if issubclass(kind, types.ModuleType):
        return f"module {imported_name(_module_name(value))}"
    if kind is types.MethodDescriptorType:
        owner = value.__objclass__
    elif kind is types.BuiltinFunctionType:
        if type(value.__module__) is str:
            return _reference(value.__module__, value.__name__)
        held = value.__self__
        owner = held if issubclass(type(held), type) else type(held)
    else:
        return None
    return _reference(class_module(owner), f"{_qualname(owner)}.{value.__name__}")


def _reference(module: Any, name: str) -> str:
    package = outermost(_text(module))
    return f"{package if package in FRAMEWORKS else imported_name(_text(module))}.{name}"


def base_classes(kind: type) -> tuple[type, ...]:
    """The classes that a class is derived from."""
    found: tuple[type, ...] = _bases(kind)
    return found


def defined_in(kind: type) -> dict[str, Any]:
    """What a class defines itself, by name; of methods and properties their functions."""
    found: dict[str, Any] = {}
    for name, value in _namespace(kind).items():
        inner = list(unwrap(value))
        for number, each in enumerate(inner):
            found[name if len(inner) == 1 else f"{name}.{number}"] = each
    return found


def unwrap(value: Any, levels: int = _LEVELS_MAX) -> Iterator[Any]:
    """What a wrapper of the standard library wraps, or the value itself."""
    names = _HELD.get(type(value))
    if names is None or not levels:
        yield value
        return
    for name in names:
        yield from unwrap(getattr(value, name, None), levels - 1)


def modules_imported(function: types.FunctionType, package: str) -> dict[str, str]:
    """The modules of its own package that a function imports when it runs, with their digests."""
    found: dict[str, str] = {}
    top = Identical(sys.modules.get(package))
    for level, name, wanted in _imports_of(Identical(function.__code__)):
        module = _absolute(name, level, _text(function.__globals__.get("__package__")))
        if outermost(module) != package:
            continue
        inside = {f"{module}.{each}": _digest(f"{module}.{each}", top) for each in wanted}
        if not wanted or None in inside.values():
            inside[module] = _digest(module, top)
        found |= {each: digest for each, digest in inside.items() if digest is not None}
    return found


def _absolute(name: str, level: int, around: str) -> str:
    """The whole name of a module that is imported from so many levels up; empty beyond the top."""
    if not level:
        return name
    parts = around.split(".")
    above = parts[: max(0, len(parts) + 1 - level)]
    return ".".join([*above, name] if name else above) if above else ""


@functools.lru_cache(maxsize=_FILES_MAX)
def _digest(module: str, _top: Identical) -> str | None:
    """Read a file once: one that is replaced later is not what was imported."""
    return module_digest(module)


@functools.lru_cache(maxsize=_CODE_MAX)
def _imports_of(compiled: Identical) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    """The imports in code: how many levels up, the name, and what is imported from it."""
    found = []
    for code in _codes(compiled.value):
        before: list[dis.Instruction] = []
        for each in dis.get_instructions(code):
            if each.opname == "IMPORT_NAME":
                # The two values on the stack are put there right before.
                level, wanted = (instruction.argval for instruction in before[-2:])
                found.append((level, each.argval, wanted or ()))
            if each.opname != "EXTENDED_ARG":
                before = [*before[-1:], each]
    return tuple(found)


TASK = "task."
"""What the places of tasks of the functional API begin with."""

_PARTS = (
    *(BaseLanguageModel, BasePromptTemplate, BaseTool, Pregel, Runnable, SystemMessage),
    *(_TaskFunction, functools.partial, types.FunctionType, types.MethodType),
)
_VISITS_MAX = 20_000

"""How many classes are remembered with how their objects are looked at."""


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
    functions of frameworks at a place (`node.agent`), the digests of the code, each once. For each
    class (`class.app.tools.Search`) those of its bases and of what it takes from elsewhere; for
    each module that is imported in a function (`module.app.tools`) that of its file."""
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


class _Waiting(NamedTuple):
    """Something that is to be looked at."""

    value: Any
    place: str
    package: str
    """Code or an object of this package refers to it."""
    own: bool
    """Whether it is the application that holds it, and not the framework."""


_FORMS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (types.ModuleType, ""),
    (type, "_class"),
    (BUILTINS, "_builtin"),
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
        self._applications: set[str] = set()

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
                    f"{found.place}: the graph holds more than {_VISITS_MAX} objects to look "
                    "through",
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
        self._object(value.__self__, place, package)

    def _partial(self, value: Any, place: str, package: str, _own: bool) -> None:  # noqa: FBT001
        self.add([value.func, value.args, value.keywords], place, package)

    def _task(self, value: Any, _place: str, package: str, _own: bool) -> None:  # noqa: FBT001
        self.add([value.func], _task_place(value), package)

    def _mapping(self, value: Any, place: str, package: str, own: bool) -> None:  # noqa: FBT001
        self._collection(value, dict(value), place, package, own=own)

    def _sequence(self, value: Any, place: str, package: str, own: bool) -> None:  # noqa: FBT001
        self._collection(value, dict(enumerate(value)), place, package, own=own)

    def _runnable(self, value: Any, place: str, package: str, _own: bool) -> None:  # noqa: FBT001
        self._object(value, place, package)
        self._methods(value, place)

    def _builtin(self, value: Any, place: str, _package: str, _own: bool) -> None:  # noqa: FBT001
        digest = joined_digest(["builtin", str(reference_to(value))])
        self._count(f"{place}: {value.__name__}", digest)

    def _class(self, kind: type, place: str, package: str, _own: bool) -> None:  # noqa: FBT001
        """A class, if it is of the application that refers to it: all that it defines."""
        if package not in self._applications or package_of(kind) != package:
            return
        bases = base_classes(kind)
        names = [f"{reference_to(base)}" for base in bases]
        self.add(bases, place, package)
        for name, value in sorted(self._memory.held(kind, defined_in(kind)).items()):
            if type(value) is types.FunctionType and is_of(value, package):
                self._named(value, package)
            elif not name.startswith("__"):  # those are Python's own, and some come later
                names += _named_references({name: value})
                self._value(value, place, package)
        self._count(f"class.{reference_to(kind)}", joined_digest(["class", *names]))

    def _named(self, function: types.FunctionType, package: str) -> None:
        """A function of an application that is found by its name, wherever that is used."""
        self.add([function], f"function.{reference_to(function)}", package)

    def _value(self, value: Any, place: str, package: str) -> None:
        """What a name of an application leads to."""
        for each in unwrap(value):
            if type(each) is not types.FunctionType:
                if type(each) not in BUILTINS:  # the name that leads to it says what it is
                    self.add([each], place, package, own=True)
            elif is_of(each, package):
                self._named(each, package)

    def _count(self, name: str, digest: str) -> None:
        found = self.parts.code.setdefault(name, [])
        if digest not in found:
            found.append(digest)

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

    def _is_application(self, package: str, within: str) -> bool:
        """Whether a package is the application: the framework runs something of it."""
        if package not in FRAMEWORKS and (not within or within in FRAMEWORKS):
            self._applications.add(package)
        return package in self._applications

    def _object(self, owner: Any, place: str, within: str) -> None:
        """What an object holds: all of it, if it is the framework's."""
        slots, package = _attributes(owner), package_of(type(owner))
        own = package not in FRAMEWORKS
        if own:
            slots = self._memory.held(owner, slots)
        if self._is_application(package, within):
            self.add([type(owner)], place, package)
        self.add(slots.values(), place, package, own=own)

    def _tool(self, tool: BaseTool, _place: str, within: str, _own: bool) -> None:  # noqa: FBT001
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
        self._object(tool, place, within)

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
        within: str,
        _own: bool,  # noqa: FBT001
    ) -> None:
        package = package_of(function)
        if package not in FRAMEWORKS and within not in FRAMEWORKS and is_of(function, within):
            package = within
        digest = function_digest(function)
        self.add(function.__defaults__ or (), place, package)
        self.add((function.__kwdefaults__ or {}).values(), place, package)
        self.add([getattr(function, "__wrapped__", None)], place, package)
        if package in FRAMEWORKS:
            self._count(code_name(place, function), digest)
            self.add(_cells(function).values(), place, package)
            return  # its version says what it does
        self.parts.functions.append((place, function))
        cells = self._memory.held(function, _cells(function))
        application = self._is_application(package, within)
        found = globals_used(function, package if application else None)
        used = self._memory.held(function.__code__, found)
        names = _named_references(cells) + _named_references(used)
        if names:
            digest = joined_digest(["names", digest, *names])
        self._count(code_name(place, function), digest)
        self.add(cells.values(), place, package, own=True)
        for value in used.values():
            self._value(value, place, package)
        if application:
            for module, file in modules_imported(function, package).items():
                self._count(f"module.{module}", file)


def _named_references(slots: Mapping[str, Any]) -> list[str]:
    """What names lead to, where that has a name of its own."""
    found = ((name, reference_to(each)) for name, value in slots.items() for each in unwrap(value))
    return sorted(f"{name} = {reference}" for name, reference in found if reference is not None)


def _task_place(task: Any) -> str:
    """Which task it is: where its function is defined, and what the framework calls it."""
    function = task.func
    module, given = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    name = getattr(function, "__qualname__", "") or type(function).__qualname__
    if given and name.rpartition(".")[2] != given:
        name = f"{name}.{given}"
    return f"{TASK}{imported_name(module)}.{name}"


def _cells(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # nothing was put into it yet
    return found


def _attributes(value: Any) -> dict[str, Any]:
    found = getattr(value, "__dict__", None)
    return dict(found) if isinstance(found, dict) else {}
