# SPDX-License-Identifier: Apache-2.0
"""A name that is in no table becomes data, where somebody asks for that."""

from typing import Any

import pytest

from sealpoint.errors import GlobalNotAllowed, ModelMalformed
from sealpoint_models.scan import Inert, read_meaning, run_pickle
from tests.pt_files import call, dictionary, named, text, tupled
from tests.scan.assembler import pickle


def _read(program: bytes) -> Any:
    data = pickle(program)
    return read_meaning(
        run_pickle(data, "p"), storages={}, file_bytes=len(data), what="p", unknown="inert"
    )


def test_a_name_alone_is_its_text() -> None:
    """Nothing was to be done with it."""
    found = _read(named("os", "system"))

    assert (found.type, found.made, found.arguments, found.state) == ("os.system", "name", (), None)


def test_a_call_keeps_what_it_was_given() -> None:
    """Arguments, items, pairs and state, as plain data."""
    found = _read(
        call("a.b", "C", text("x"), b"K\x01")
        + b"K\x05a"
        + text("k")
        + text("v")
        + b"s"
        + dictionary((text("y"), b"K\x02"))
        + b"b"
    )

    assert (found.type, found.made) == ("a.b.C", "call")
    assert found.arguments == ("x", 1)
    assert found.items == [5]
    assert found.pairs == [("k", "v")]
    assert found.state == {"y": 2}


def test_an_object_is_one_that_was_made_without_a_call() -> None:
    """With arguments by name where a pickle has them."""
    found = _read(named("a", "B") + b")" + dictionary((text("k"), b"N")) + b"\x92")

    assert (found.made, found.keywords) == ("object", {"k": None})


def test_an_object_may_be_inside_itself() -> None:
    """As one is that has a link to its parent."""
    found = _read(named("a", "B") + b")\x81q\x00" + dictionary((text("parent"), b"h\x00")) + b"b")

    assert found.state["parent"] is found


def test_what_is_known_stays_what_it_is_around_and_inside_of_it() -> None:
    """And is held to the same rules there."""
    found = _read(tupled(call("a", "B", call("decimal", "Decimal", text("1.5"))), b"K\x01"))

    assert str(found[0].arguments[0]) == "1.5"
    assert found[1] == 1
    with pytest.raises(ModelMalformed, match="Decimal in the form"):
        _read(call("a", "B", call("decimal", "Decimal", text("01"))))


def test_the_default_lists_every_name() -> None:
    """In the order of the file, and nothing is made."""
    program = run_pickle(pickle(tupled(call("a", "B"), named("c", "D"))), "p")

    with pytest.raises(GlobalNotAllowed, match=r"'a\.B', 'c\.D'"):
        read_meaning(program, storages={}, file_bytes=9, what="p")


def test_its_text_is_one_short_line() -> None:
    """However much it holds, and whatever it is called."""
    long = Inert("m\n" * 200, made="call", arguments=(1,) * 9, state={"a": 1, "b": 2, "c": 3, 4: 5})

    assert len(repr(long).splitlines()) == 1
    assert "arguments=<9>" in repr(long)
    assert "'a', 'b', 'c', ..." in repr(long)
    assert repr(Inert("a.B")) == "Inert('a.B')"
    assert repr(Inert("a.B", keywords={}, state=[1])) == (
        "Inert('a.B', keywords=<...>, state=<list>)"
    )


def test_two_of_them_are_equal_only_if_they_are_one() -> None:
    """So that none has to be looked into to be a key."""
    first, second = Inert("a.B"), Inert("a.B")

    assert first != second
    assert len({first, second, first}) == 2
