# SPDX-License-Identifier: Apache-2.0
"""The frameworks' types come back as they were, and nothing else is ever built."""

import subprocess
import sys
from enum import Enum
from typing import Any

import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.types import Command, Send
from pydantic import BaseModel, ConfigDict

import sealpoint
from sealpoint.adapters.guarded_runs import extra_missing
from sealpoint.codec import BUILTINS, PLAIN_REASONS, Registry
from sealpoint.errors import (
    BytesMalformed,
    DecodeError,
    RuleInvalid,
    TypeNotAllowed,
    ValueNotAllowed,
    VersionUnknown,
)
from sealpoint_langgraph._framework_models import model_pair
from sealpoint_langgraph._framework_types import (
    FRAMEWORK_TYPES,
    allow_framework_types,
    storable_error,
)
from tests.effort import examples
from tests.unit.adapters.langgraph.samples import SAMPLES, registry

_PAIRS = {each.name: each.pair for each in FRAMEWORK_TYPES}


def _storage(value: Any) -> tuple[Any, ...]:
    """Everything that a pydantic model keeps."""
    parts = (value.__dict__, value.__pydantic_extra__, value.__pydantic_private__)
    return (*parts, value.__pydantic_fields_set__)


def _assert_same(found: Any, value: Any) -> None:
    assert type(found) is type(value)
    assert found == value
    assert repr(found) == repr(value)
    if isinstance(value, BaseModel):
        assert _storage(found) == _storage(value)


def test_every_type_has_a_sample_and_a_reason() -> None:
    """No type is allowed that these tests do not look at, and each says why in a sentence."""
    assert {type(value) for value in SAMPLES} == {each.cls for each in FRAMEWORK_TYPES}
    for each in FRAMEWORK_TYPES:
        assert each.reason.endswith(".")
        assert "\n" not in each.reason


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_a_framework_object_comes_back_equal_and_of_its_type(value: Any) -> None:
    """Flat and in a tree, alone and in a list, an object comes back with all that it kept."""
    known, blobs = registry(), dict[Any, bytes]()

    def put(blob: bytes) -> bytes:
        blobs[name := sealpoint.ids.Digest.of(blob).raw] = blob
        return name

    root = known.encode_tree({"channel": [value] * 40}, put)

    _assert_same(known.decode(known.encode(value)), value)
    _assert_same(known.decode_tree(root, blobs.__getitem__)["channel"][39], value)


def test_all_of_them_pass_through_a_store() -> None:
    """A store whose registry knows the types gives all of them back."""
    with sealpoint.open_store("memory:", registry=registry()) as store:
        store.thread("t").save({"all": list(SAMPLES)})
        found = store.thread("t").load().state["all"]

    for back, value in zip(found, SAMPLES, strict=True):
        _assert_same(back, value)


def test_adding_the_types_again_changes_nothing() -> None:
    """Rules that are there stay, also an application's own for a type of the framework."""
    known = Registry()
    known.allow(HumanMessage, name="own.human")
    allow_framework_types(known)
    before = known.rules
    allow_framework_types(known)

    assert known.rules == before
    assert {rule.name for rule in before} == {*_PAIRS, "own.human"} - {"langchain.human"}


def test_a_name_that_the_application_took_is_an_error() -> None:
    """Two meanings of one stored name are refused."""

    class Other(Enum):
        ONE = 1

    known = Registry()
    known.allow(Other, name="langchain.human")

    with pytest.raises(RuleInvalid, match=r"langchain\.human"):
        allow_framework_types(known)


def test_what_the_framework_calls_safe_is_allowed() -> None:
    """Every class of the framework's own list is allowed here, except compiled patterns."""
    plain = {kind for builtin in BUILTINS for kind in builtin.types} | set(PLAIN_REASONS)
    allowed = plain | {each.cls for each in FRAMEWORK_TYPES}
    names = {(kind.__module__.split("._")[0], kind.__name__) for kind in allowed}
    safe = {(module.split("._")[0], name) for module, name in SAFE_MSGPACK_TYPES}

    assert safe - names == {("re", "compile"), ("pathlib", "Path")}  # no object's class is Path


def test_a_subclass_of_a_message_is_refused_with_its_path() -> None:
    """An application's own message needs a rule of its own."""

    class Mine(HumanMessage):
        pass

    with pytest.raises(TypeNotAllowed, match=r'state\["messages"\]\[1\].*Mine'):
        registry().encode({"messages": [HumanMessage("a"), Mine(content="b")]})


def test_what_a_message_carries_must_be_allowed_too() -> None:
    """An artifact of a type that nobody allowed is refused when it is saved."""
    message = ToolMessage("ok", tool_call_id="1", artifact=object())

    with pytest.raises(TypeNotAllowed, match="object"):
        registry().encode([message])


@given(
    content=st.text() | st.lists(st.text() | st.dictionaries(st.text(), st.integers()), max_size=3),
    fields=st.dictionaries(
        st.sampled_from(["id", "name"]), st.none() | st.text(max_size=9), max_size=2
    ),
    extra=st.dictionaries(st.from_regex("x_[a-z]{1,5}", fullmatch=True), st.integers(), max_size=2),
    mutated=st.booleans(),
    assigned=st.booleans(),
)
def test_any_message_comes_back_with_what_it_kept(
    content: Any, fields: Any, extra: dict[str, int], *, mutated: bool, assigned: bool
) -> None:
    """Given, defaulted, mutated, assigned and extra attributes of messages all survive."""
    message = AIMessage(content, **fields, **extra)
    if mutated:
        message.response_metadata["later"] = (1, 2)
    if assigned:
        message.id = "assigned"
        message.x_later = 5  # type: ignore[attr-defined]
    known = registry()

    _assert_same(known.decode(known.encode([message]))[0], message)


def test_an_object_that_skipped_its_constructor_comes_back() -> None:
    """What model_construct and copies leave in a message is kept, whatever counts as given."""
    made = AIMessage.model_construct(_fields_set={"id"}, content="x")
    known = registry()

    _assert_same(known.decode(known.encode(made)), made)


def test_an_unset_field_and_a_stray_attribute_are_refused() -> None:
    """A message that no constructor makes is refused when it is saved, not half-stored."""
    unset, stray = HumanMessage("a"), HumanMessage("b")
    del unset.__dict__["type"]
    stray.__dict__["stray"] = 1

    for message in (unset, stray):
        with pytest.raises(ValueNotAllowed):
            registry().encode(message)


class _Old(BaseModel):
    model_config = ConfigDict(extra="allow")
    content: str
    kind: str = "old"


class _New(BaseModel):
    model_config = ConfigDict(extra="allow")
    content: str
    score: int | None = None
    tags: list[str] = []
    kind: str = "old"


_SETTLED = ("content", "kind")


def test_a_field_that_a_framework_adds_changes_no_bytes() -> None:
    """Old objects read with the new class get the default; new ones are stored as before."""
    take_old, build_old = model_pair(_Old, _SETTLED)
    take_new, build_new = model_pair(_New, _SETTLED)

    assert take_old(_Old(content="a")) == take_new(_New(content="a"))
    assert build_new(take_old(_Old(content="a"))) == _New(content="a")
    assert build_old(take_new(_New(content="a"))) == _Old(content="a")
    assert build_new(take_new(_New(content="a", score=1))) == _New(content="a", score=1)


def test_a_mutable_default_is_never_shared() -> None:
    """Two objects that were stored without a list have lists of their own."""
    take, _ = model_pair(_Old, _SETTLED)
    _, build = model_pair(_New, _SETTLED)
    one, other = build(take(_Old(content="a"))), build(take(_Old(content="a")))
    one.tags.append("x")

    assert other.tags == []


def test_an_extra_attribute_that_became_a_field_is_that_field() -> None:
    """What was extra under an older version is not lost under one that declares it."""
    take, _ = model_pair(_Old, _SETTLED)
    _, build = model_pair(_New, _SETTLED)
    found = build(take(_Old(content="a", score=7)))  # type: ignore[call-arg]

    assert found == _New(content="a", score=7)
    assert found.__pydantic_extra__ == {}


def test_a_field_that_the_installed_version_lacks_is_refused() -> None:
    """A field of a newer version is an error that names it, never dropped."""
    take, _ = model_pair(_New, _SETTLED)
    _, build = model_pair(_Old, _SETTLED)

    with pytest.raises(VersionUnknown, match="'score'"):
        build(take(_New(content="a", score=1)))
    with pytest.raises(VersionUnknown, match="'later'"):
        _PAIRS["langgraph.send"][1]({"node": "a", "arg": 1, "later": 1})


_TOO_MANY = 1 << 60


@pytest.mark.parametrize(
    "form",
    [
        None,
        "text",
        [],
        [{}],
        [{}, 0],
        [{"content": "a"}, -1],
        [{"content": "a"}, _TOO_MANY],
        [{"content": "a"}, True],
        [{"content": "a"}, "1"],
        [{"content": "a", 1: 2}, 0],
        [{"content": "a"}, 0, {"content": "b"}, {}],
        [{"content": "a"}, 0, {}, {"_private": 1}],
        [{"content": "a"}, 0, [], {}],
        [{"content": "a", "__class__": "x"}, 0],
        [{"content": "a"}, 0, {}],
    ],
    ids=repr,
)
def test_a_form_that_no_message_has_is_refused(form: Any) -> None:
    """Bytes that say something else in place of a message's form build no message."""
    known = registry()
    plain = known.encode(HumanMessage("a"))
    label = plain[plain.index(b"\x0flangchain.human") :][: 1 + 15 + 2 + 8]
    payload = label + b"\x91" + ormsgpack.packb(form, option=ormsgpack.OPT_NON_STR_KEYS)

    with pytest.raises(DecodeError):
        known.decode(ormsgpack.packb(ormsgpack.Ext(1, payload)))


@pytest.mark.parametrize("name", sorted(_PAIRS))
@settings(max_examples=examples(20))
@given(
    form=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=5)
            | st.dictionaries(st.sampled_from(["content", "type", "node", "value", "x"]), inner)
        ),
        max_leaves=8,
    )
)
def test_no_form_builds_anything_but_its_class(name: str, form: Any) -> None:
    """Whatever the data says, the result is exactly the class of the rule, or a refusal."""
    cls = next(each.cls for each in FRAMEWORK_TYPES if each.name == name)
    try:
        built = _PAIRS[name][1](form)
    except DecodeError:
        return

    assert type(built) is cls


def test_loading_runs_no_constructor_and_no_validator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are put together without calling anything of their classes."""
    known = registry()
    data = known.encode(list(SAMPLES))

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("called")

    for cls in (BaseMessage, AIMessage, Send, Command):
        monkeypatch.setattr(cls, "__init__", fail)

    assert len(known.decode(data)) == len(SAMPLES)


def test_an_exception_is_stored_as_its_text() -> None:
    """The channel of errors keeps what the framework's own savers keep."""

    class Broken(Exception):
        def __repr__(self) -> str:
            raise RuntimeError

    assert storable_error(ValueError("no")) == "ValueError('no')"
    assert storable_error(KeyboardInterrupt()) == "KeyboardInterrupt()"
    assert storable_error(Broken()).endswith("Broken(...)")
    assert storable_error("ValueError('no')") == "ValueError('no')"
    assert storable_error({"a": 1}) == {"a": 1}


def test_an_exception_elsewhere_is_refused() -> None:
    """Nothing else falls back to text."""
    with pytest.raises(TypeNotAllowed, match="ValueError"):
        registry().encode({"result": ValueError("no")})


def test_a_form_of_another_kind_is_refused_for_text() -> None:
    """A text is built from a string only."""
    with pytest.raises(BytesMalformed):
        _PAIRS["langchain.text"][1](["a"])


@pytest.mark.parametrize("module", ["langgraph", "langchain_core"])
def test_a_framework_that_lacks_something_is_one_sentence_with_the_command(module: str) -> None:
    """Sealpoint itself works, and the import says what to install."""
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "import sealpoint\n"
        "try:\n"
        "    import sealpoint_langgraph\n"
        "except sealpoint.SealpointError as error:\n"
        "    print(error.code, error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    name = module.replace("_", "-")
    assert result.stdout.startswith(
        f"extra-missing sealpoint_langgraph: it needs {name}, found release "
    )
    assert ": pip install -U sealpoint-langgraph\n" in result.stdout


def test_a_missing_framework_is_one_sentence_with_the_command() -> None:
    """What is not there at all, and what is not ours to tell."""
    packages = {"langgraph": "langgraph"}
    missing = ModuleNotFoundError(name="langgraph")
    other = ModuleNotFoundError(name="elsewhere")

    assert str(extra_missing("sealpoint_langgraph", packages, missing)).startswith(
        "sealpoint_langgraph: it needs langgraph, found it missing: pip install sealpoint-langgraph"
    )
    assert extra_missing("sealpoint_langgraph", packages, other) is other
