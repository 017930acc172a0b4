# SPDX-License-Identifier: Apache-2.0
"""Names can be shown and told apart; slots and labels depend on every part and on nothing else."""

import hashlib
import hmac
import unicodedata
from typing import Any

import pytest

from sealpoint.errors import NameInvalid
from sealpoint.store._names import check_name, check_path, label_of, store_slot, thread_slot
from tests.deployment import Deployment


@pytest.mark.parametrize("name", ["t", "invoice 7/2", "Rechnung №7", "\U0001f4c4", "é" * 256])
def test_printable_names_are_kept_as_they_are(name: str) -> None:
    """Any printable text of up to 512 bytes is a name."""
    assert check_name(name, "thread name") == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "a\nb", "a\0", "\x7f", "\u200b", "\u202e", "\ud800", "\t", "\u00a0x", "x" * 513),
        *("é" * 257, None, 7, b"t", ["t"]),
        *(
            " t",
            "t ",
            " ",
            "Rene\u0301",
            "\u0301t",
            "a\u3164",
            "a\u2800b",
            "t\ufe0f",
            "\u1100\u1161",
        ),
    ],
    ids=ascii,
)
def test_other_names_are_refused(name: Any, memory: Deployment) -> None:
    """What cannot be shown, is too long or is no text is refused, and never quoted."""
    with pytest.raises(NameInvalid, match=r"^thread name: ") as caught:
        check_name(name, "thread name")

    assert "x" * 20 not in str(caught.value)
    with pytest.raises(NameInvalid):
        memory.open().thread(name)


def test_a_hint_says_what_to_do_about_a_name() -> None:
    """Followed literally, it gives a name that is taken."""
    hints = {}
    for name in ("t ", "Rene\u0301", "a\u3164"):
        with pytest.raises(NameInvalid) as caught:
            check_name(name, "thread name")
        hints[name] = caught.value.hint

    assert len(set(hints.values())) == 3
    assert 'unicodedata.normalize("NFC", name)' in hints["Rene\u0301"]
    assert check_name(unicodedata.normalize("NFC", "Rene\u0301"), "thread name") == "Ren\u00e9"
    assert check_name("t ".strip(), "thread name") == "t"


def test_what_frameworks_make_of_names_is_taken_as_it_comes() -> None:
    """A node may be called as it likes: its lane is no name that somebody types."""
    for path in ("cafe\u0301:1", " node:1", "x" * 4096):
        assert check_path(path, "lane") == path
    for path in ("", "a\nb", "x" * 4097):
        with pytest.raises(NameInvalid, match="lane: expected 1 to 4096 bytes"):
            check_path(path, "lane")


@pytest.mark.parametrize("namespace", ["", "a\nb", "a ", "Rene\u0301"])
def test_a_namespace_is_a_name(namespace: str, memory: Deployment) -> None:
    """The store is not opened for a namespace that cannot be shown."""
    with pytest.raises(NameInvalid, match="namespace"):
        memory.open(namespace=namespace)


@pytest.mark.parametrize("argument", ["id", "parent"])
def test_ids_of_checkpoints_are_names(argument: str, memory: Deployment) -> None:
    """The ids that a caller gives are held to the same rule, before anything is written."""
    store = memory.open()

    with pytest.raises(NameInvalid):
        store.thread("t").save(1, **{argument: "a\nb"})  # type: ignore[arg-type]
    assert not store.storage.offered


def _framed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def test_a_slot_is_the_hmac_of_the_framed_parts() -> None:
    """The anchor's key of a thread is as the format says."""
    message = _framed(b"sealpoint thread slot", b"default", "é".encode())

    assert thread_slot(b"k" * 32, "default", "é") == hmac.digest(b"k" * 32, message, "sha256")
    assert store_slot(b"k" * 32) == hmac.digest(
        b"k" * 32, _framed(b"sealpoint store slot"), "sha256"
    )
    assert (
        label_of(b"s" * 16, "n", "t")
        == hashlib.sha256(_framed(b"sealpoint label", b"s" * 16, b"n", b"t")).digest()
    )


def test_parts_do_not_run_into_one_another() -> None:
    """Moving a character from namespace to name, or changing the secret, gives another slot."""
    slots = {
        thread_slot(secret, namespace, name)
        for secret in (b"a" * 32, b"b" * 32)
        for namespace, name in (("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"))
    }

    assert len(slots | {store_slot(b"a" * 32)}) == 9
