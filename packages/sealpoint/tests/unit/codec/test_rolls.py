# SPDX-License-Identifier: Apache-2.0
"""Long lists of objects are compared with the save before in every part that is stored."""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, PrivateAttr

from sealpoint import Limits, Registry
from sealpoint.codec import DictForm, TreeMemo
from sealpoint.errors import SealpointError
from tests.blobs import Blobs


@dataclass
class _Step:
    text: str
    found: Any = None
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Slotted:
    text: str


class _Note(BaseModel):
    model_config = ConfigDict(extra="allow")

    text: str
    found: Any = None
    _seen: int = PrivateAttr(default=0)


class _Line(BaseModel):
    text: Any


class _Pair:
    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


def _registry(limits: Limits | None = None) -> Registry:
    registry = Registry(limits=limits)
    for cls in (_Step, _Slotted, _Note, _Line):
        registry.allow(cls, name=f"app.{cls.__name__[1:].lower()}")
    registry.allow(
        _Pair,
        name="app.pair",
        encode=lambda pair: [pair.__dict__],
        decode=lambda form: _Pair(**form[0]),
    )
    registry.roll(_Pair, DictForm(("left", "right"), lambda fields, _mask: [[fields]]))
    return registry


_MAKERS: dict[str, Callable[[int], Any]] = {
    "dataclass": lambda number: _Step(f"{number} " * 100),
    "model": lambda number: _Note(text=f"{number} " * 100),
    "plain model": lambda number: _Line(text=f"{number} " * 100),
    "pair": lambda number: _Pair(f"{number} " * 100, None),
    "slots": lambda number: _Slotted(f"{number} " * 100),
}
_REST = "__pydantic_extra__"
_OWN = "__pydantic_private__"
_MODEL_CHANGES: dict[str, Callable[[Any], object]] = {
    "no extra": lambda note: object.__setattr__(note, _REST, None),
    "an extra": lambda note: note.__pydantic_extra__.update(x=1),
    "extra of another type": lambda note: object.__setattr__(note, _REST, OrderedDict()),
    "given": lambda note: note.__pydantic_fields_set__.add("found"),
    "no private": lambda note: object.__setattr__(note, _OWN, None),
    "empty private": lambda note: object.__setattr__(note, _OWN, {}),
    "another private": lambda note: note.__pydantic_private__.update(_seen=1),
}
_CHANGES: dict[str, Callable[[Any], object]] = {
    "a number": lambda step: step.__dict__.update(found=1),
    "a truth": lambda step: step.__dict__.update(found=True),
    "a fraction": lambda step: step.__dict__.update(found=1.0),
    "minus zero": lambda step: step.__dict__.update(found=-0.0),
    "zero": lambda step: step.__dict__.update(found=0.0),
    "a list": lambda step: step.__dict__.update(found=[1]),
    "a tuple": lambda step: step.__dict__.update(found=(1,)),
    "an order": lambda step: step.__dict__.update(found={"a": 1, "b": 2}),
    "another order": lambda step: step.__dict__.update(found={"b": 2, "a": 1}),
    "a dict of another type": lambda step: step.__dict__.update(found=OrderedDict(a=1, b=2)),
    "half a character": lambda step: step.__dict__.update(found="\udc80"),
    "other keys": lambda step: step.__dict__.update(found={1: 2}),
    "an object": lambda step: step.__dict__.update(found=_Step("inner")),
    "something that is not allowed": lambda step: step.__dict__.update(found=object()),
    "long text": lambda step: step.__dict__.update(found="x" * 20_000),
    "a long list": lambda step: step.__dict__.update(found=[_Step("y" * 300)] * 50),
    "an attribute": lambda step: step.__dict__.update(colour="red"),
    "another class": lambda step: setattr(step, "__class__", _Pair),
}


def _save(registry: Registry, state: Any, memo: TreeMemo | None = None) -> bytes | str:
    blobs = Blobs()
    try:
        return registry.encode_tree(state, blobs.put, seed=b"s", memo=memo)
    except SealpointError as error:
        return str(error)


def _memo() -> TreeMemo:
    return TreeMemo(lambda _names: True)


@pytest.mark.parametrize("change", _CHANGES)
def test_every_change_of_a_field_is_saved(change: str) -> None:
    """As without a memo, and once more when it is changed back."""
    registry, memo = _registry(), _memo()
    state = [_MAKERS["dataclass"](number) for number in range(100)]
    assert _save(registry, state, memo) == _save(registry, state)
    before = dict(state[40].__dict__)
    _CHANGES[change](state[40])

    assert _save(registry, state, memo) == _save(registry, state)
    state[40].__class__ = _Step
    object.__setattr__(state[40], "__dict__", before)
    assert _save(registry, state, memo) == _save(registry, state)


@pytest.mark.parametrize("change", _MODEL_CHANGES)
def test_every_change_beside_the_fields_of_a_model_is_saved(change: str) -> None:
    """Which were given, extra ones and private ones: none of them lies among the fields."""
    registry, memo = _registry(), _memo()
    state = [_MAKERS["model"](number) for number in range(100)]
    for note in state:
        note.__pydantic_private__ = None if change != "no private" else {}
    state[40].__pydantic_private__ = {} if change == "no private" else None
    if change == "another private":
        state[40].__pydantic_private__ = {"_seen": 0}
    _save(registry, state, memo)
    _MODEL_CHANGES[change](state[40])

    assert _save(registry, state, memo) == _save(registry, state)


@pytest.mark.parametrize("kind", _MAKERS)
@pytest.mark.parametrize("count", [33, 64, 65, 129, 200])
def test_a_list_that_grows_and_shrinks_is_saved_and_loaded_as_it_is(kind: str, count: int) -> None:
    """At its end, at its beginning, and in between."""
    registry, blobs, memo = _registry(), Blobs(), _memo()
    make = _MAKERS[kind]
    state = [make(number) for number in range(count)]
    edits: tuple[Callable[[], object], ...] = (
        lambda: None,
        lambda: state.append(make(1000)),
        lambda: state.extend([make(1001), make(1002)]),
        lambda: state.pop(0),
        lambda: state.insert(40, make(1003)),
        state.pop,
        state.clear,
        lambda: state.extend(make(number) for number in range(count)),
    )
    for edit in edits:
        edit()
        root = registry.encode_tree(state, blobs.put, seed=b"s", memo=memo)
        found = registry.decode_tree(root, blobs.get, memo=memo)

        assert root == registry.encode_tree(state, blobs.put, seed=b"s")
        assert registry.encode(found) == registry.encode(state)
        state[:] = found


@pytest.mark.parametrize("kind", ["dataclass", "plain model", "pair"])
def test_what_was_just_written_is_built_without_its_blobs(kind: str) -> None:
    """Two loads share nothing with each other or with what is remembered."""
    registry, blobs, memo = _registry(), Blobs(), _memo()
    state = [_MAKERS[kind](number) for number in range(100)]
    for each in state:
        each.__dict__[next(iter(each.__dict__))] = ["a" * 200]
    root = registry.encode_tree(state, blobs.put, seed=b"s", memo=memo)
    root_alone = {root: blobs.get(root)}.__getitem__
    one, other = (registry.decode_tree(root, root_alone, memo=memo) for _ in range(2))
    name = next(iter(one[0].__dict__))
    for each in (*one, *other):
        getattr(each, name).append("mine")

    again = registry.decode_tree(root, root_alone, memo=memo)
    assert registry.encode(again) == registry.encode(state)


def test_the_chunks_of_one_list_are_not_taken_for_those_of_another() -> None:
    """Where a list that was too short to be cut has grown, before one that was cut already."""
    registry, blobs, memo = _registry(), Blobs(), _memo()
    steps = [_MAKERS["dataclass"](number) for number in range(300)]
    for count in (0, 10, 20, 33, 40, 200, 5, 40):
        state = {"short": steps[:count], "long": steps[100:], "other": steps[: count // 2]}
        root = registry.encode_tree(state, blobs.put, seed=b"s", memo=memo)

        assert root == registry.encode_tree(state, blobs.put, seed=b"s")
        assert registry.decode_tree(root, blobs.get, memo=memo) == state


def test_bytes_that_were_not_written_here_are_decoded_by_the_rules() -> None:
    """A reference with another digest, count or length finds nothing that is remembered."""
    registry, blobs, memo = _registry(), Blobs(), _memo()
    state = [_MAKERS["dataclass"](number) for number in range(100)]
    registry.encode_tree(state, blobs.put, seed=b"s", memo=memo)
    state[3].text = "of another writer"
    root = registry.encode_tree(state, blobs.put, seed=b"s")

    assert registry.decode_tree(root, blobs.get, memo=memo) == state


@pytest.mark.parametrize("depth", [250, 251, 252, 253, 254, 255, 256])
@pytest.mark.parametrize("kind", ["dataclass", "pair"])
def test_nesting_has_the_same_bound_with_a_memo(kind: str, depth: int) -> None:
    """What is too deep for one encoding is so for the other."""
    registry, memo = _registry(), _memo()
    state = [_MAKERS[kind](number) for number in range(100)]
    deep: list[Any] = []
    for _ in range(depth - 1):
        deep = [deep]
    state[50].__dict__[[*state[50].__dict__][1]] = deep

    for _ in range(2):
        assert _save(registry, state, memo) == _save(registry, state)


@pytest.mark.parametrize("count", [63, 64, 65, 66])
def test_costly_values_are_counted_once(count: int) -> None:
    """However often a list is looked at, and whatever of it is new."""
    registry, memo = _registry(Limits(costly_values_max=65)), _memo()
    state = [_MAKERS["dataclass"](number) for number in range(100)]
    for _ in range(3):
        for place in range(count - 3):
            state[place].found = deque([place])
        assert _save(registry, state, memo) == _save(registry, state)
        state += [_Step("more", deque())]


def test_what_another_process_has_collected_is_put_again() -> None:
    """A roll says what a list holds, and not that the store still has it."""
    registry, memo = _registry(), TreeMemo(lambda _names: False)
    state = [_MAKERS["dataclass"](number) for number in range(100)]
    registry.encode_tree(state, Blobs().put, seed=b"s", memo=memo)
    blobs = Blobs()
    root = registry.encode_tree(state, blobs.put, seed=b"s", memo=memo)

    assert registry.decode_tree(root, blobs.get) == state
    assert registry.decode_tree(root, blobs.get, memo=memo) == state


def test_members_that_are_long_are_compared_and_cut_like_others() -> None:
    """Few of them among others, or a list of nothing else."""
    registry, blobs, memo = _registry(), Blobs(), _memo()
    for every in (20, 3):
        state = [_Step("z" * (30_000 if number % every == 0 else 300)) for number in range(100)]
        for _ in range(3):
            state[every].text += "!"
            root = registry.encode_tree(state, blobs.put, seed=b"s", memo=memo)

            assert root == registry.encode_tree(state, blobs.put, seed=b"s")
            assert registry.decode_tree(root, blobs.get, memo=memo) == state


def test_an_interrupt_while_members_are_packed_is_one() -> None:
    """It is neither swallowed nor taken for a member that cannot be packed."""

    class Loud(dict[str, Any]):
        pass

    registry, memo = _registry(), _memo()

    def interrupt(_value: Any) -> Any:
        raise KeyboardInterrupt

    registry.allow(Loud, name="app.loud", encode=interrupt, decode=Loud)
    state = [_MAKERS["dataclass"](number) for number in range(100)]
    _save(registry, state, memo)
    state[30].found = Loud()

    with pytest.raises(KeyboardInterrupt):
        _save(registry, state, memo)
