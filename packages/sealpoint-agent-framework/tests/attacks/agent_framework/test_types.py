# SPDX-License-Identifier: Apache-2.0
"""Encodings of the framework's types that nobody's codec wrote: refused by us, and nothing runs.

Whoever made them could sign them as well; they are decoded here as if they were genuine.
"""

import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from agent_framework import WorkflowCheckpoint, WorkflowEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint.codec import Registry
from sealpoint.errors import BytesMalformed, DecodeError, UnknownType, VersionUnknown
from sealpoint.limits import Limits
from sealpoint_agent_framework._framework_types import WORKFLOW_TYPES
from tests.effort import examples
from tests.unit.adapters.agent_framework.samples import SAMPLES, registry, same_parts

REGISTRY = registry()
_OBJECTS = tuple(each for each in WORKFLOW_TYPES if each.defaults is not None)
_WRONG = Fraction(1, 3)
"""A value that is allowed, and that no field which says what it holds may hold."""


class Forgery:
    """Writes values under the names of the framework's types, whatever is in them."""

    def __init__(self) -> None:
        self.registry = Registry(limits=Limits(extension_depth_max=200))
        self._classes: dict[str, Any] = {}

    def value(self, name: str, form: Any) -> Any:
        """An object that is encoded as this form of the type of this name."""
        if name not in self._classes:
            cls = type(name, (), {})
            self._classes[name] = cls
            self.registry.allow(cls, name=name, encode=_form_of, decode=_form_of)
        made = self._classes[name]()
        made.form = form
        return made

    def encoded(self, name: str, form: Any) -> bytes:
        """The bytes."""
        return self.registry.encode(self.value(name, form))


def _form_of(forged: Any) -> Any:
    return forged.form


def _event(**changed: Any) -> dict[str, Any]:
    form = {
        "type": "request_info",
        "data": 42,
        "_request_id": "r1",
        "_source_executor_id": "clerk",
        "_request_type": "int",
        "_response_type": "bool",
    }
    return form | changed


def _checkpoint(**changed: Any) -> dict[str, Any]:
    names = ("workflow_name", "graph_signature_hash", "checkpoint_id", "timestamp")
    return dict.fromkeys(names, "x") | changed


def test_the_forgery_is_what_the_codec_writes() -> None:
    """Otherwise everything below would be refused for another reason."""
    event = REGISTRY.decode(Forgery().encoded("agent_framework.event", _event()))

    assert same_parts(event, WorkflowEvent.request_info("r1", "clerk", 42, bool))


@pytest.mark.parametrize(
    "reference",
    [
        *("eval", "os.system", "builtins.eval", "subprocess.Popen", "this.d", "", "Popen", "type"),
        *({"rule": "subprocess.popen"}, {"rule": "pathlib.path"}, {"rule": ""}, {"rule": 3}),
        {"rule": "app.tests.attacks.agent_framework.test_types.forgery"},
        *({"of": []}, {"of": ["int", "int"]}, {"of": ["eval", "int"]}, {"of": "list"}),
        *({"of": [{"rule": "agent_framework.message"}, "int"]}, {"of": ["typing.Dict", "int"]}),
        *({"union": []}, {"union": ["eval"]}, {"union": [3]}, {"union": {"str": 1}}),
        *({"literal": []}, {"literal": [_WRONG]}, {"literal": [["a"]]}, {"literal": "ab"}),
        *({"import": ["os"]}, {"schema": {}}, {"rule": "a", "of": []}, {}, {1: "int"}),
        *(3, ["list", "int"], b"str", _WRONG, {"of": ["list", *["int"] * 999]}),
    ],
    ids=str,
)
@pytest.mark.parametrize("field", ["_request_type", "_response_type"])
def test_a_type_that_is_not_allowed_is_not_found(field: str, reference: Any) -> None:
    """Names of real classes, of modules that are not loaded, and what is no reference at all."""
    before = set(sys.modules)
    data = Forgery().encoded("agent_framework.event", _event(**{field: reference}))

    with pytest.raises(DecodeError):
        REGISTRY.decode(data)
    assert set(sys.modules) == before


def test_a_class_that_only_another_registry_knows_is_not_found() -> None:
    """The rules of the registry in use count, also if the class is loaded and was allowed once."""
    wider = registry()
    wider.allow(Limits, name="shop.limits")
    event = WorkflowEvent.request_info("r1", "clerk", 42, Limits)
    data = wider.encode(event)

    assert wider.decode(data).response_type is Limits
    with pytest.raises(UnknownType, match=r"shop\.limits"):
        REGISTRY.decode(data)


@pytest.mark.parametrize("form", ["Popen", {"rule": "subprocess.popen"}, {"schema": 3}, 7])
def test_a_response_is_parsed_as_nothing_that_data_chose(form: Any) -> None:
    """The format of a response is a reference like any other."""
    data = Forgery().encoded("agent_framework.agent-response", {"_response_format": form})

    with pytest.raises(DecodeError):
        REGISTRY.decode(data)


def _fields_with_kinds() -> Iterator[Any]:
    for each in _OBJECTS:
        for name in each.kinds:
            if name in (each.defaults or {}):
                yield pytest.param(each, name, id=f"{each.cls.__name__}.{name}")


@pytest.mark.parametrize(("each", "field"), list(_fields_with_kinds()))
def test_a_field_of_another_kind_is_refused(each: Any, field: str) -> None:
    """What the framework would trip over later is refused when it is loaded."""
    sample = next(value for value in SAMPLES if type(value) is each.cls)
    rule = REGISTRY.rule_of(each.cls)
    assert rule is not None
    (form,) = rule.kind.to_body(sample)

    assert same_parts(rule.from_body([dict(form)]), sample)
    with pytest.raises(BytesMalformed, match=field):
        rule.from_body([form | {field: _WRONG}])


@pytest.mark.parametrize("members", [[3], ["text"], [None], {"a": 1}, "text"])
def test_what_a_list_holds_is_looked_at(members: Any) -> None:
    """A message holds contents and nothing else, a response messages."""
    forgery = Forgery()

    with pytest.raises(BytesMalformed, match="contents"):
        REGISTRY.decode(
            forgery.encoded("agent_framework.message", {"role": "user", "contents": members})
        )
    with pytest.raises(BytesMalformed, match="messages"):
        REGISTRY.decode(forgery.encoded("agent_framework.agent-response", {"messages": members}))


@pytest.mark.parametrize("each", _OBJECTS, ids=lambda each: each.cls.__name__)
def test_more_and_fewer_fields_are_refused(each: Any) -> None:
    """No attribute comes from data that the class does not have, and none is missing."""
    required = [name for name, item in each.defaults.items() if type(item) is object]
    forgery = Forgery()

    with pytest.raises(VersionUnknown):
        REGISTRY.decode(forgery.encoded(each.name, {"__class__": "int"}))
    for form in ([], None, "text", [1, 2], {1: 2}, {("a",): 1}):
        with pytest.raises(DecodeError):
            REGISTRY.decode(forgery.encoded(each.name, form))
    if required:
        with pytest.raises(BytesMalformed, match=required[0]):
            REGISTRY.decode(forgery.encoded(each.name, {}))


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("agent_framework.content", {"type": "text"}),
        ("agent_framework.message", {"role": "user"}),
        ("agent_framework.agent-response", {}),
        ("agent_framework.chat-update", {}),
    ],
)
def test_what_is_never_stored_is_not_taken_from_data(name: str, form: dict[str, Any]) -> None:
    """A raw representation is a live object, and data has none."""
    forged = Forgery().encoded(name, form | {"raw_representation": {"a": 1}})

    assert REGISTRY.decode(Forgery().encoded(name, form)).raw_representation is None
    with pytest.raises(BytesMalformed, match="raw_representation"):
        REGISTRY.decode(forged)


@pytest.mark.parametrize(
    "form",
    [
        _event(type="output"),
        _event(type="status", _request_id="r1"),
        _event(_request_id="r2"),
        {"type": "request_info", "data": 42},
        _event(_response_type=None),
        _event(_request_type=None),
    ],
    ids=["output", "status", "another id", "no id", "no answer's type", "no question's type"],
)
def test_only_requests_wait_for_an_answer(form: Any) -> None:
    """Another event in their place, or one under another's id, is no checkpoint."""
    forgery = Forgery()
    pending = {"r1": forgery.value("agent_framework.event", form)}
    stored = _checkpoint(pending_request_info_events=pending)

    with pytest.raises(DecodeError):
        REGISTRY.decode(forgery.encoded("agent_framework.checkpoint", stored))


@pytest.mark.parametrize(
    "pending", [{"r1": 3}, {"r1": {"type": "request_info"}}, [1], {"r1": None}]
)
def test_what_waits_are_events(pending: Any) -> None:
    """A map that looks like an event is none."""
    stored = _checkpoint(pending_request_info_events=pending)

    with pytest.raises(DecodeError):
        REGISTRY.decode(Forgery().encoded("agent_framework.checkpoint", stored))


def _nested_contents(forgery: Forgery, depth: int) -> Any:
    value = forgery.value("agent_framework.content", {"type": "text"})
    for _ in range(depth):
        value = forgery.value(
            "agent_framework.content", {"type": "function_approval_request", "function_call": value}
        )
    return value


def _nested_checkpoints(forgery: Forgery, depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = forgery.value("agent_framework.checkpoint", _checkpoint(state={"inner": value}))
    return value


@pytest.mark.parametrize("nested", [_nested_contents, _nested_checkpoints])
def test_huge_nesting_is_refused(nested: Any) -> None:
    """Contents in contents and checkpoints in checkpoints have a bound, which real ones keep to."""
    forgery = Forgery()

    assert REGISTRY.decode(forgery.registry.encode(nested(forgery, 8)))
    with pytest.raises(DecodeError):
        REGISTRY.decode(forgery.registry.encode(nested(forgery, 120)))


def test_a_deep_reference_is_refused() -> None:
    """A type of types of types, a hundred deep."""
    reference: Any = "int"
    for _ in range(100):
        reference = {"of": ["list", reference]}

    with pytest.raises(DecodeError):
        REGISTRY.decode(
            Forgery().encoded("agent_framework.event", _event(_response_type=reference))
        )


def test_no_code_of_the_framework_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constructors, setters and hooks of the classes are not called, whatever is decoded."""
    encoded = [REGISTRY.encode(value) for value in SAMPLES]
    ran: list[str] = []
    for each in _OBJECTS:
        for name in ("__init__", "__post_init__", "__setattr__", "__setstate__"):
            monkeypatch.setattr(
                each.cls, name, lambda *_, name=name, **__: ran.append(name), raising=False
            )
    found = [REGISTRY.decode(data) for data in encoded]
    monkeypatch.undo()

    assert not ran
    assert all(map(same_parts, found, SAMPLES))


_NAMES = sorted({name for each in _OBJECTS for name in (each.defaults or {})})
_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "str", "a", *_NAMES]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@settings(max_examples=examples(150))
@given(
    each=st.sampled_from(_OBJECTS),
    form=st.dictionaries(st.sampled_from(_NAMES), _PLAIN, max_size=6) | _PLAIN,
)
def test_any_form_is_a_value_or_refused_by_us(each: Any, form: Any) -> None:
    """No error of the framework or of Python comes out, and what comes out can be saved again."""
    data = Forgery().encoded(each.name, form)
    try:
        found = REGISTRY.decode(data)
    except DecodeError:
        return

    assert type(found) is each.cls
    assert same_parts(REGISTRY.decode(REGISTRY.encode(found)), found)


def test_a_checkpoint_of_plain_messages_is_one() -> None:
    """Not an attack: the framework's own tests have texts and dicts as messages."""
    plain: Any = {"a": [{"data": 1}, "text"]}
    checkpoint = WorkflowCheckpoint("w", "h", messages=plain)

    assert same_parts(REGISTRY.decode(REGISTRY.encode(checkpoint)), checkpoint)
