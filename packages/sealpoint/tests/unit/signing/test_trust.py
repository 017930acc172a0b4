# SPDX-License-Identifier: Apache-2.0
"""Roots count different known keys; pins have one spelling and say which store they mean."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import Forged, NotTrusted
from sealpoint.ids import StoreId
from sealpoint.signing import PublicKey, Root, RootDocument, Seal, TrustPin
from tests.unit.signing.samples import pin, seal, signer

_ONE, _TWO, _THREE, _STRANGER = (signer(number) for number in (1, 2, 3, 4))
_ROOT = Root(version=1, threshold=2, keys=[key.public for key in (_ONE, _TWO, _THREE)])


@pytest.mark.parametrize(
    "keys", [(_ONE, _TWO), (_THREE, _ONE), (_ONE, _TWO, _THREE)], ids=["1 2", "3 1", "1 2 3"]
)
def test_enough_different_keys_are_believed(keys: tuple[object, ...]) -> None:
    """Any two of the three will do, in any order, and so will all."""
    _ROOT.verify(b"m", [seal(key, b"m") for key in keys])  # type: ignore[arg-type]


def test_unknown_keys_are_passed_over() -> None:
    """Seals of strangers neither help nor hurt."""
    _ROOT.verify(b"m", [seal(_STRANGER, b"m"), seal(_ONE, b"m"), seal(_TWO, b"m")])

    with pytest.raises(NotTrusted, match="expected 2 of the keys of root 1, found 1"):
        _ROOT.verify(b"m", [seal(_STRANGER, b"m"), seal(_ONE, b"m")])


def test_one_key_never_counts_twice() -> None:
    """Many seals by one key are the word of one key."""
    with pytest.raises(NotTrusted, match="found 1"):
        _ROOT.verify(b"m", [seal(_ONE, b"m")] * 5)


def test_no_seal_means_no() -> None:
    """Nothing signed by nobody is never believed."""
    with pytest.raises(NotTrusted, match="found 0"):
        _ROOT.verify(b"m", [])


def test_a_root_key_that_did_not_sign_is_a_forgery() -> None:
    """A false seal in the name of a root key is refused even beside enough true ones."""
    true = [seal(_ONE, b"m"), seal(_TWO, b"m")]

    for false in (seal(_THREE, b"n"), Seal(_THREE.public.id, _ONE.sign(b"m"))):
        with pytest.raises(Forged):
            _ROOT.verify(b"m", [*true, false])


@pytest.mark.parametrize(
    ("version", "threshold", "numbers"),
    [
        (0, 1, [1]),
        (-1, 1, [1]),
        (1, 0, [1]),
        (1, -1, [1]),
        (1, 2, [1]),
        (1, 1, []),
        (1, 0, []),
        (1, 1, range(1, 18)),
        (1, 1, [1, 1]),
        (1, 2, [1, 2, 1]),
    ],
)
def test_an_impossible_root_is_refused(version: int, threshold: int, numbers: list[int]) -> None:
    """No key, a key twice, too many keys, or a threshold that is nothing or out of reach."""
    keys = [signer(number).public for number in numbers]

    with pytest.raises(NotTrusted, match=r"^root: "):
        Root(version=version, threshold=threshold, keys=keys)


def test_sixteen_keys_are_a_root() -> None:
    """The most keys that a root may have, all of which must sign."""
    root = Root(version=2, threshold=16, keys=[signer(n).public for n in range(1, 17)])
    root.verify(b"m", [seal(signer(n), b"m") for n in range(1, 17)])

    with pytest.raises(NotTrusted, match="expected 16 of the keys of root 2, found 15"):
        root.verify(b"m", [seal(signer(n), b"m") for n in range(1, 16)])


@given(
    st.binary(min_size=16, max_size=16),
    st.integers(1, 5),
    st.integers(1, 1000),
    st.integers(0, 2**53),
)
def test_a_pin_is_read_as_it_was_written(
    store: bytes, threshold: int, version: int, roster: int
) -> None:
    """Encoding and parsing a pin are a round trip."""
    keys = [signer(number).public for number in range(1, 6)]
    root = Root(version=version, threshold=threshold, keys=keys)
    made = TrustPin(store=StoreId(store), root=root, roster_seq_min=roster)
    found = TrustPin.parse(made.encode())

    assert found.encode() == made.encode()
    assert (found.store, found.roster_seq_min) == (made.store, roster)
    assert (found.root.version, found.root.threshold) == (version, threshold)
    assert found.root.keys == tuple(keys)
    assert found.fingerprint() == made.fingerprint()


def test_a_pin_is_readable_and_ends_with_a_line_end() -> None:
    """People read pins and pass them on."""
    document = json.loads(pin().encode())

    assert pin().encode().endswith(b"}\n")
    assert list(document) == ["v", "store", "root", "roster"]
    assert document["store"].startswith("store:")
    assert document["root"]["keys"] == [str(signer(number).public) for number in (1, 2, 3)]


def test_other_spellings_of_a_pin_are_refused() -> None:
    """Spaces, order, duplicates and escapes make another document."""
    good = pin().encode()
    spellings = [
        *(good.rstrip(), good + b"\n", b" " + good, good.replace(b": ", b":"), b"\n" + good),
        *(good.replace(b'"roster": 3', b'"roster": 2,\n  "roster": 3'),),
        *(good.replace(b'"v": 1', b'"v": 2,\n  "v": 1'), good.replace(b'"v"', b'"\\u0076"')),
        *(good.replace(b'"threshold": 2', b'"threshold": 1,\n    "threshold": 2'),),
        json.dumps(json.loads(good)).encode(),
        json.dumps(json.loads(good), indent=2, sort_keys=True).encode() + b"\n",
    ]

    for spelling in spellings:
        assert spelling != good
        with pytest.raises(NotTrusted, match="byte for byte"):
            TrustPin.parse(spelling)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b'"v": 1', b'"v": 2', "expected version 1, found 2"),
        (b'"v": 1', b'"v": true', "expected a pin as JSON"),
        (b'"v": 1', b'"v": "1"', "expected a pin as JSON"),
        (b'"v": 1', b'"w": 1', "expected a pin as JSON"),
        (b'"v": 1', b'"v": 1,\n  "extra": 1', "expected a pin as JSON"),
        (b'"version": 1', b'"version": 1,\n    "extra": 1', "expected a pin as JSON"),
        (b'"version": 1', b'"version": 0', "^root"),
        (b'"threshold": 2', b'"threshold": 0', "^root"),
        (b'"threshold": 2', b'"threshold": 4', "^root"),
        (b'"threshold": 2', b'"threshold": 1.5', "expected a pin as JSON"),
        (b'"roster": 3', b'"roster": -1', "0 or more, found -1"),
        (b'"roster": 3', b'"roster": null', "expected a pin as JSON"),
        (b'"roster": 3', b'"roster": 1e400', "expected a pin as JSON"),
        (b'"roster": 3', b'"roster": ' + b"9" * 5000, "expected a pin as JSON"),
        (b"store:", b"thread:", "expected a pin as JSON"),
        (b"store:00", b"store:0", "expected a pin as JSON"),
        (b'"store:', b'"\xff:', "expected a pin as JSON"),
        (str(signer(2).public).encode(), str(signer(1).public).encode(), "keys is given twice"),
        (str(signer(2).public).encode(), b"00" * 32, "public key"),
        (str(signer(2).public).encode(), b"0", "public key"),
        (str(signer(2).public).encode(), str(signer(2).public).upper().encode(), "public key"),
    ],
)
def test_an_edited_pin_is_refused(old: bytes, new: bytes, complaint: str) -> None:
    """Every field is checked, and a field that nobody knows is refused."""
    good = pin().encode()

    assert good.count(old) == 1
    with pytest.raises(NotTrusted, match=complaint):
        TrustPin.parse(good.replace(old, new))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b"[" * 60_000, b"\xff"])
def test_other_bytes_are_no_pin(data: bytes) -> None:
    """Whatever else lies in the place of a pin is refused as one."""
    with pytest.raises(NotTrusted, match="expected a pin as JSON"):
        TrustPin.parse(data)


def test_a_pin_has_a_bound() -> None:
    """The length is checked before anything is parsed."""
    with pytest.raises(NotTrusted, match="at most 65536 bytes, found 65537"):
        TrustPin.parse(b" " * 65537)


def test_a_pin_below_zero_is_refused() -> None:
    """There is no roster before the first."""
    with pytest.raises(NotTrusted, match="0 or more"):
        pin(-1)


def test_the_fingerprint_is_of_store_and_root_alone() -> None:
    """A later roster keeps the fingerprint; another store, key, order or threshold changes it."""
    same = pin().with_roster(9)
    root = pin().root
    others = [
        TrustPin(store=StoreId(bytes(16)), root=root),
        *(
            TrustPin(store=pin().store, root=changed)
            for changed in (
                Root(version=2, threshold=2, keys=root.keys),
                Root(version=1, threshold=1, keys=root.keys),
                Root(version=1, threshold=2, keys=root.keys[:2]),
                Root(version=1, threshold=2, keys=root.keys[::-1]),
                Root(version=1, threshold=2, keys=[*root.keys[:2], _STRANGER.public]),
            )
        ),
    ]

    assert same.roster_seq_min == 9
    assert (same.store, same.root) == (pin().store, same.root)
    assert same.fingerprint() == pin().fingerprint()
    assert len({other.fingerprint() for other in (*others, pin())}) == len(others) + 1


def test_the_keys_of_a_parsed_root_are_ready_to_verify() -> None:
    """A pin that was read verifies what its root signed."""
    found = TrustPin.parse(pin().encode())
    found.root.verify(b"m", [seal(_ONE, b"m"), seal(_TWO, b"m")])

    assert all(isinstance(key, PublicKey) for key in found.root.keys)


_NEWER = Root(version=3, threshold=1, keys=[_STRANGER.public])


def test_a_root_is_read_as_it_is_written_down() -> None:
    """The document of a root leads back to it; what cannot be a root is refused."""
    found = Root.parse(_ROOT.document)

    assert found.document == _ROOT.document
    assert (found.version, found.threshold, found.keys) == (1, 2, _ROOT.keys)
    assert _NEWER.document != _ROOT.document
    with pytest.raises(NotTrusted, match="threshold"):
        Root.parse(RootDocument(1, 2, (str(_ONE.public),)))
    with pytest.raises(NotTrusted, match="public key"):
        Root.parse(RootDocument(1, 1, ("zz",)))


def test_a_pin_names_the_newest_root_that_is_known() -> None:
    """It travels with the pin, and neither it nor a roster changes the fingerprint."""
    made = pin().with_root(_NEWER)
    document = json.loads(made.encode())
    found = TrustPin.parse(made.encode())

    assert list(document) == ["v", "store", "root", "roster", "newest"]
    assert document["newest"] == {"version": 3, "threshold": 1, "keys": [str(_STRANGER.public)]}
    assert found.encode() == made.encode()
    assert found.newest is not None
    assert found.newest.document == _NEWER.document
    assert found.root.document == pin().root.document
    assert made.fingerprint() == pin().fingerprint()
    assert made.with_roster(9).newest is made.newest
    assert made.with_root(_NEWER).roster_seq_min == 3


def test_a_pin_without_a_newer_root_has_the_bytes_it_had() -> None:
    """Pins of earlier versions are read and written as they were."""
    assert pin().newest is None
    assert pin().with_root(pin().root).encode() == pin().encode()
    assert b"newest" not in pin().encode()
    with pytest.raises(NotTrusted, match="byte for byte"):
        TrustPin.parse(pin().encode().replace(b'"roster": 3', b'"roster": 3,\n  "newest": null'))


@pytest.mark.parametrize("version", [1, 2])
def test_the_newest_root_comes_after_the_first(version: int) -> None:
    """A pin whose newest root is the first, or before it, says nothing that can be."""
    root = Root(version=2, threshold=1, keys=[_ONE.public])
    newest = Root(version=version, threshold=1, keys=[_TWO.public])

    with pytest.raises(NotTrusted, match=f"after version 2, found version {version}"):
        TrustPin(store=StoreId(bytes(16)), root=root, newest=newest)
