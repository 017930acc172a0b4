# SPDX-License-Identifier: Apache-2.0
"""Data that names a constructor builds nothing, in whatever format and position it does so."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from sealpoint.errors import DecodeError
from tests.application import Step, make_registry
from tests.wire import array, binary, extension, mapping, text, typed

REGISTRY = make_registry()

# What LangGraph's serializer puts into its extensions: module, name, argument, method.
_CALLS = [
    ("builtins", "eval", "open('PLANTED', 'w')", ""),
    ("os", "system", "touch PLANTED", ""),
    ("subprocess", "Popen", ["touch", "PLANTED"], ""),
    ("antigravity", "open", "https://example.invalid", "fly"),
    ("tests.attacks.codec.planted_module", "anything", 1, "model_validate"),
]

Position = Callable[[bytes], bytes]

_POSITIONS: dict[str, Position] = {
    "value": lambda data: data,
    "list member": lambda data: array(b"\x01", data),
    "map value": lambda data: mapping(text("key"), data),
    "map key": lambda data: mapping(data, b"\x01"),
    "tuple member": lambda data: extension(6, array(data)),
    "set member": lambda data: extension(7, array(data)),
    "frozenset member": lambda data: extension(8, array(data)),
    "dict key": lambda data: extension(5, array(data, b"\x01")),
    "dict value": lambda data: extension(5, array(b"\x01", data)),
    "defaultdict value": lambda data: extension(21, b"\x01" + array(b"\x01", data)),
    "defaultdict factory": lambda data: extension(21, data + array()),
    "deque length": lambda data: extension(19, array(data, array())),
    "slice part": lambda data: extension(23, array(data, b"\xc0", b"\xc0")),
    "range part": lambda data: extension(22, array(data, b"\x01", b"\x01")),
    "fraction part": lambda data: extension(15, array(data, b"\x01")),
    "nested extensions": lambda data: extension(6, array(extension(6, array(data)))),
    "raw payload of every other tag": lambda data: extension(16, data),
    "array header": lambda data: extension(32, len(data).to_bytes(2, "big") + data),
    "typed field": lambda data: typed(
        REGISTRY, "app.step", b"\x91\x82" + text("title") + data + text("detail") + b"\xc0"
    ),
    "typed body": lambda data: typed(REGISTRY, "app.step", data),
    "typed head": lambda data: extension(1, data),
    "pair of functions": lambda data: typed(REGISTRY, "app.money", b"\x91" + array(b"\x01", data)),
}


def _plain_types(value: Any) -> bool:
    """Tell whether a value holds nothing but plain data and the one type around it."""
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_plain_types, value))
    if type(value) is dict:
        return all(map(_plain_types, (*value, *value.values())))
    if type(value) is Step:
        return _plain_types(value.title) and _plain_types(value.detail)
    return type(value) in (str, bytes, int, bool, float, type(None)) or type(value).__module__ in (
        "tests.application",
        "builtins",
        "collections",
        "fractions",
    )


@pytest.fixture(autouse=True)
def _nothing_is_planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run in an empty directory, which must stay empty; and import nothing."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield
    assert list(tmp_path.iterdir()) == []
    assert not {"antigravity", "tests.attacks.codec.planted_module"} & (set(sys.modules) - before)


@pytest.mark.parametrize("position", _POSITIONS)
@pytest.mark.parametrize("code", range(8))
def test_a_langgraph_constructor_extension_builds_nothing(code: int, position: str) -> None:
    """Its extensions 0 to 7 name a module and a constructor; here they name nothing."""
    for call in _CALLS:
        payload = ormsgpack.packb(list(call))
        hostile = _POSITIONS[position](extension(code, payload))

        try:
            decoded = REGISTRY.decode(hostile)
        except DecodeError:
            continue
        # Tags 3, 5, 6 and 7 are our big int, pairs, tuple and set, which can be read out of texts.
        assert code in (3, 5, 6, 7)
        assert _plain_types(decoded)


@pytest.mark.parametrize("position", _POSITIONS)
@pytest.mark.parametrize(
    "envelope",
    [
        {"lc": 1, "type": "constructor", "id": ["builtins", "eval"], "kwargs": {"source": "1"}},
        {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["touch PLANTED"]},
        {"lc": 1, "type": "secret", "id": ["HOME"]},
        {"py/object": "subprocess.Popen", "py/newargs": [["touch", "PLANTED"]]},
        {"py/reduce": [{"py/type": "os.system"}, {"py/tuple": ["touch PLANTED"]}]},
        {"py/object/apply:os.system": ["touch PLANTED"]},
        {"__class__": "Popen", "__module__": "subprocess", "args": ["touch PLANTED"]},
        {"__pydantic_type__": "os:system", "_type": "Step", "title": "x"},
        {"$type": "System.Diagnostics.Process", "@class": "java.lang.Runtime"},
    ],
    ids=lambda envelope: next(iter(envelope)) + " " + str(next(iter(envelope.values())))[:12],
)
def test_an_envelope_that_looks_like_a_constructor_stays_data(
    envelope: dict[str, Any], position: str
) -> None:
    """A map with the marks of a constructor call decodes to that map, or not at all."""
    for data in (
        ormsgpack.packb(envelope),
        text(json.dumps(envelope)),
        binary(json.dumps(envelope).encode()),
    ):
        hostile = _POSITIONS[position](data)

        try:
            decoded = REGISTRY.decode(hostile)
        except DecodeError:
            continue
        assert _plain_types(decoded)

    assert REGISTRY.decode(REGISTRY.encode(envelope)) == envelope


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "tests.application.step",
        "subprocess.popen",
        "step",
        "app.step.x",
    ],
)
def test_a_typed_value_finds_its_rule_by_the_whole_head_only(name: str) -> None:
    """The name in a head is compared with the names of rules, and looked up nowhere else."""
    encoded = name.encode()
    head = bytes((len(encoded),)) + encoded + b"\0\1" + bytes(8)

    with pytest.raises(DecodeError, match=r"a name that a rule allows"):
        REGISTRY.decode(extension(1, head + b"\x91\x80"))


def test_a_typed_value_of_another_application_is_refused() -> None:
    """Bytes that one registry wrote give one without the rule an error that names the type."""
    data = REGISTRY.encode(Step("a"))

    with pytest.raises(DecodeError, match=r"app\.step"):
        make_registry(rules=()).decode(data)
