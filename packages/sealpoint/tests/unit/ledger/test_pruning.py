# SPDX-License-Identifier: Apache-2.0
"""What a prune and a delete say: what was given up, all of it, and where the one before lies."""

import hashlib
from typing import Any

import msgspec
import pytest

from sealpoint.errors import Edited
from sealpoint.ledger import Body, Kind, PruneBody, encode_body, parse_body
from tests.ledgers import SALT


def _parse(kind: Kind, data: bytes) -> Body:
    """Parse as if the header named exactly these bytes."""
    body: Body = parse_body(kind, hashlib.sha256(data).hexdigest(), data)
    return body


@pytest.mark.parametrize(
    ("before", "kept", "covered"),
    [
        (0, (), ()),
        (1, (), (0,)),
        (4, (), (0, 1, 2, 3)),
        (4, (0, 1, 2, 3), ()),
        (6, (2, 4), (0, 1, 3, 5)),
        (6, (0, 5), (1, 2, 3, 4)),
    ],
)
def test_a_prune_covers_what_is_below_its_bound_and_not_kept(
    before: int, kept: tuple[int, ...], covered: tuple[int, ...]
) -> None:
    """Positions at the bound and above it keep their payload, and so do those that are listed."""
    body = PruneBody(salt=SALT, before=before, kept=kept)

    assert [seq for seq in range(10) if body.covers(seq)] == list(covered)
    assert _parse(Kind.PRUNE, encode_body(body)) == body


@pytest.mark.parametrize(
    ("before", "kept"),
    [(-1, ()), (5, (5,)), (5, (6,)), (5, (2, 2)), (5, (3, 2)), (5, (-1,)), (0, (0,))],
    ids=["negative", "the bound", "beyond", "twice", "falling", "below zero", "nothing below"],
)
def test_positions_that_no_writer_would_list_are_refused(
    before: int, kept: tuple[int, ...]
) -> None:
    """Kept positions rise, are below the bound and begin at 0, even where the owner signed more."""
    body = PruneBody(salt=SALT, before=before, kept=kept)

    with pytest.raises(Edited, match="expected the fields of a prune"):
        _parse(Kind.PRUNE, encode_body(body))


@pytest.mark.parametrize(
    "field", [b'"before":"9"', b'"before":9.5', b'"before":null', b'"before":1e3']
)
def test_a_bound_is_a_number(field: bytes) -> None:
    """Another type, or another spelling of a number, is refused."""
    data = encode_body(PruneBody(salt=SALT, before=9)).replace(b'"before":9', field)

    with pytest.raises(Edited):
        _parse(Kind.PRUNE, data)


_HIDDEN_NONSENSE: list[tuple[tuple[int, int], ...]] = [
    ((4, 3),),
    ((-1, 2),),
    ((2, 4), (4, 5)),
    ((2, 4), (5, 6)),
    ((5, 6), (2, 3)),
    ((2, 2), (2, 2)),
]


@pytest.mark.parametrize("hidden", _HIDDEN_NONSENSE, ids=str)
@pytest.mark.parametrize("kind", [Kind.PRUNE, Kind.DELETE])
def test_stretches_that_no_writer_lists_are_refused(
    kind: Kind, hidden: tuple[tuple[int, int], ...]
) -> None:
    """They rise, are apart, and none ends before it begins."""
    with pytest.raises(Edited):
        _parse(kind, encode_body(PruneBody(salt=SALT, before=0, deleted=hidden)))


def test_what_is_hidden_is_covered() -> None:
    """Below the bound or above it, kept or not; nothing beside the stretches is."""
    body = PruneBody(salt=SALT, before=6, kept=(2, 4, 5), deleted=((4, 4), (8, 9)))

    assert [seq for seq in range(12) if body.deletes(seq)] == [4, 8, 9]
    assert [seq for seq in range(12) if body.covers(seq)] == [0, 1, 3, 4, 8, 9]
    assert body.end == 10
    assert PruneBody(salt=SALT, before=6).end == 6


@pytest.mark.parametrize(
    ("later", "includes"),
    [
        ({"deleted": ((4, 4), (8, 9))}, True),
        ({"deleted": ((2, 9),)}, True),
        ({"deleted": ((4, 4), (8, 8))}, False),
        ({"deleted": ((8, 9),)}, False),
        ({"deleted": ((4, 4), (9, 12))}, False),
        ({"deleted": ()}, False),
        ({"deleted": ((4, 4), (8, 9)), "before": 5}, False),
        ({"deleted": ((4, 4), (8, 9)), "kept": (2, 3, 5)}, False),
        ({"deleted": ((3, 4), (8, 9)), "kept": (2, 3, 4)}, True),
        ({"deleted": ((4, 4), (8, 9)), "before": 10, "kept": (2, 9)}, True),
    ],
    ids=str,
)
def test_what_is_gone_stays_so(later: dict[str, Any], *, includes: bool) -> None:
    """A later body includes an earlier one if nothing that was given up is there again."""
    earlier = PruneBody(salt=SALT, before=6, kept=(2, 4, 5), deleted=((4, 4), (8, 9)))

    assert msgspec.structs.replace(earlier, **later).includes(earlier) is includes


@pytest.mark.parametrize("kind", [Kind.PRUNE, Kind.DELETE])
@pytest.mark.parametrize("field", [b"-1", b"null", b"1.5", b'"2"', b"true"])
def test_the_one_before_is_named_by_a_position(kind: Kind, field: bytes) -> None:
    """A prune or delete names where the one before it lies, or nothing."""
    data = encode_body(PruneBody(salt=SALT, before=9, earlier=4))
    changed = data.replace(b'"earlier":4', b'"earlier":' + field)

    assert changed != data
    for earlier in (None, 0, 4):
        body = PruneBody(salt=SALT, before=9, earlier=earlier)
        assert _parse(kind, encode_body(body)) == body
    with pytest.raises(Edited):
        _parse(kind, changed)


_SPANS = ((2, 4), (7, 7), (9, 12))


def test_the_span_at_a_position_is_the_last_that_has_begun() -> None:
    """Where none has begun it is an empty one, which no position lies in."""
    body = PruneBody(salt=SALT, before=0, deleted=_SPANS)
    spans = [body.span_at(seq) for seq in range(15)]

    assert spans[:2] == [(0, -1), (1, 0)]
    assert spans[2:7] == [(2, 4)] * 5
    assert spans[7:9] == [(7, 7)] * 2
    assert spans[9:] == [(9, 12)] * 6
    assert PruneBody(salt=SALT, before=5).span_at(3) == (3, 2)
    assert [seq for seq in range(15) if seq <= spans[seq][1]] == [2, 3, 4, 7, 9, 10, 11, 12]


@pytest.mark.parametrize(
    ("before", "first"),
    [
        (None, 2),
        ((), 2),
        (((2, 4),), 7),
        (((2, 4), (7, 7)), 9),
        (((2, 4), (7, 7), (9, 10)), 11),
        (((2, 3), (7, 7), (9, 12)), 4),
        (((3, 4), (7, 7), (9, 12)), 2),
        (((2, 4), (9, 12)), 7),
        (_SPANS, None),
        (((0, 20),), None),
    ],
    ids=str,
)
def test_the_first_position_that_is_newly_deleted(
    before: tuple[tuple[int, int], ...] | None, first: int | None
) -> None:
    """It is the lowest that is deleted now and was not then; there is none if all were."""
    now = PruneBody(salt=SALT, before=0, deleted=_SPANS)
    then = None if before is None else PruneBody(salt=SALT, before=0, deleted=before)

    assert now.newly_deleted(then) == first
    lowest = (seq for seq in range(20) if now.deletes(seq) and not (then and then.deletes(seq)))
    assert next(lowest, None) == first


def test_a_prune_deletes_nothing() -> None:
    """What lost its payload alone is not among what is newly deleted."""
    now = PruneBody(salt=SALT, before=9, kept=(4,))

    assert now.newly_deleted(None) is None
    assert now.newly_deleted(PruneBody(salt=SALT, before=3)) is None
