# SPDX-License-Identifier: Apache-2.0
"""What holds for all worlds and every two of them."""

from hypothesis import given
from hypothesis import strategies as st

from sealpoint.world import LeafChange, Tool, World, visible
from tests.unit.world.samples import NAMES, WORLDS


def _same(one: object, other: object) -> bool:
    """Whether two JSON values are one, where Python takes 1, 1.0 and True for equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


def _leaves(changes: tuple[LeafChange, ...]) -> list[str]:
    return [change.leaf for change in changes]


@given(WORLDS)
def test_an_encoding_is_read_back_equal(world: World) -> None:
    """Encoding and decoding, and the plain form, lose nothing."""
    again = World.decode(world.encode())

    assert again == world
    assert hash(again) == hash(world)
    assert again.encode() == world.encode()
    assert _same(again.to_dict(), world.to_dict())
    assert World.from_dict(world.to_dict()) == world


@given(WORLDS)
def test_a_world_is_its_attributes(world: World) -> None:
    """A world that is built from the attributes of another is equal to it."""
    again = World(
        code=world.code,
        tools=reversed(world.tools),
        permissions=reversed(world.permissions),
        model=world.model,
        prompts=world.prompts,
        agents=world.agents,
        topology=world.topology,
        runtime=world.runtime,
        extra=world.extra,
    )

    assert again == world


@given(WORLDS)
def test_a_world_does_not_differ_from_itself(world: World) -> None:
    """There is nothing to tell between a world and itself, read again."""
    diff = world.diff(World.decode(world.encode()))

    assert diff.same
    assert (diff.differs, diff.narrower) == (frozenset(), frozenset())
    assert diff.lines() == ()
    assert diff.by_class() == {}


@given(WORLDS, WORLDS)
def test_digests_are_equal_if_and_only_if_worlds_are(one: World, other: World) -> None:
    """Digest, equality, plain form and difference agree about whether two worlds are one."""
    equal = _same(one.to_dict(), other.to_dict())

    assert (one.digest == other.digest) == equal
    assert (one == other) == equal
    assert one.diff(other).same == equal
    assert _same(one.leaves(), other.leaves()) == equal


@given(WORLDS, WORLDS)
def test_what_is_added_one_way_is_removed_the_other_way(one: World, other: World) -> None:
    """A difference read backwards is the difference backwards."""
    there, back = one.diff(other), other.diff(one)

    assert _leaves(there.added) == _leaves(back.removed) == sorted(_leaves(there.added))
    assert _leaves(there.removed) == _leaves(back.added) == sorted(_leaves(there.removed))
    assert _leaves(there.changed) == _leaves(back.changed) == sorted(_leaves(there.changed))
    assert [change.parts for change in there.changed] == [change.parts for change in back.changed]


@given(WORLDS, WORLDS)
def test_a_difference_leads_from_one_world_to_the_other(one: World, other: World) -> None:
    """The leaves of the first, with the changes made, are the leaves of the second."""
    diff = one.diff(other)
    made = one.leaves()
    for change in diff.removed:
        assert _same(made.pop(change.leaf), change.before)
    for change in (*diff.added, *diff.changed):
        made[change.leaf] = change.after

    assert _same(made, other.leaves())


@given(WORLDS, WORLDS)
def test_every_difference_differs_or_is_narrower(one: World, other: World) -> None:
    """Each leaf that differs has its class in exactly one of the two, and its line in its class."""
    diff = one.diff(other)
    changes = (*diff.added, *diff.removed, *diff.changed)

    assert diff.differs.isdisjoint(diff.narrower)
    assert diff.differs | diff.narrower == {change.leaf_class for change in changes}
    assert {*diff.by_class()} == diff.differs | diff.narrower
    assert sorted(diff.lines()) == sorted(
        line for each in diff.by_class().values() for line in each
    )


@given(WORLDS, WORLDS)
def test_narrower_means_fewer_leaves(one: World, other: World) -> None:
    """In a class that is narrower the later world has fewer leaves, each as the earlier has it."""
    diff = one.diff(other)
    for leaf_class in diff.narrower:
        assert not any(each.leaf_class is leaf_class for each in (*diff.added, *diff.changed))
        assert any(each.leaf_class is leaf_class for each in diff.removed)


@given(WORLDS, st.data())
def test_taking_something_away_is_narrower(world: World, data: st.DataObject) -> None:
    """Without some of its tools, permissions and sub-agents a world is narrower."""
    plain = world.to_dict()
    for key in ("tools", "permissions"):
        if key in plain:
            plain[key] = data.draw(st.lists(st.sampled_from(plain[key]), unique_by=repr))
    if "agents" in plain:
        kept = data.draw(st.sets(st.sampled_from(sorted(plain["agents"]))))
        plain["agents"] = {name: plain["agents"][name] for name in kept}
    later = World.from_dict(plain)

    assert not world.diff(later).differs
    assert bool(world.diff(later).narrower) == (later != world)
    assert bool(later.diff(world).differs) == (later != world)
    assert not later.diff(world).narrower


@given(st.text(), st.text())
def test_different_texts_look_different(one: str, other: str) -> None:
    """Making a text visible never makes two texts one."""
    assert (visible(one) == visible(other)) == (one == other)


@given(st.text() | NAMES | st.text("\\u{}0123456789abcdef\u202e/", max_size=12))
def test_what_is_visible_prints(text: str) -> None:
    """Nothing that is left in a visible text is unprintable, and showing it is not undone."""
    assert visible(text).isprintable()
    assert "\u202e" not in visible(text)


_ODD = st.text("\\u{}25cf61/.:\u202e\n a", min_size=1, max_size=8)


@given(_ODD, _ODD, _ODD, _ODD)
def test_names_never_collide(agent: str, tool: str, agent2: str, tool2: str) -> None:
    """Two worlds with other names have other leaves and other lines, whatever the names are."""
    one = World(agents={agent: World(tools=[Tool(tool)])})
    other = World(agents={agent2: World(tools=[Tool(tool2)])})
    same = (agent, tool) == (agent2, tool2)

    assert (list(one.leaves()) == list(other.leaves())) == same
    assert (World().diff(one).lines() == World().diff(other).lines()) == same


@given(_ODD, _ODD, st.sampled_from(["tools", "permissions"]))
def test_kinds_never_collide(one: str, other: str, kind: str) -> None:
    """A sub-agent, a tool and a permission have different leaves, whatever they are called."""
    flat = World.from_dict({kind: [one]})
    deep = World(agents={other: World(permissions=[one])})

    assert flat.leaves().keys().isdisjoint(deep.leaves().keys())
