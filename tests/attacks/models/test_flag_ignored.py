# SPDX-License-Identifier: Apache-2.0
"""A `torch.load` that somebody replaced, so that the flag is shown, taken, and dropped.

Each loader here was found in the wild or is one step from it. Two of them honour the flag.
"""

import functools
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sealpoint.errors import FlagNotHonoured, GlobalNotAllowed
from sealpoint.models import _pt as _flag
from sealpoint.models._pt import prove_weights_only
from tests.pt_files import call, ours, pickled, saved, stock, text

_STOCK = torch.load


def _by_default(*arguments: Any, **options: Any) -> Any:
    options.setdefault("weights_only", False)
    return _STOCK(*arguments, **options)


def _popped(*arguments: Any, **options: Any) -> Any:
    options.pop("weights_only", None)
    return _STOCK(*arguments, **options, weights_only=False)


@functools.wraps(_STOCK)
def _wrapped(*arguments: Any, **options: Any) -> Any:
    return _STOCK(*arguments, **options | {"weights_only": False})


def _falls_back(file: Any, **options: Any) -> Any:
    try:
        return _STOCK(file, **options)
    except pickle.UnpicklingError:
        file.seek(0)
        return _STOCK(file, **options | {"weights_only": False})


def _falls_back_in_secret(file: Any, **options: Any) -> Any:
    try:
        return _STOCK(file, **options)
    except pickle.UnpicklingError:
        file.seek(0)
        _STOCK(file, **options | {"weights_only": False})
        raise


def _before_the_flag(f: Any, map_location: Any = None, pickle_module: Any = pickle) -> Any:
    raise AssertionError((f, map_location, pickle_module))


def _does_something_else(*_arguments: Any, **_options: Any) -> Any:
    raise FileNotFoundError


def _refuses_everything(*_arguments: Any, **_options: Any) -> Any:
    raise RuntimeError("weights_only refused")


def _returns_what_it_likes(*arguments: Any, **options: Any) -> Any:
    return [_STOCK(*arguments, **options)]


_HONEST = {"stock": _STOCK, "another default": _by_default}
_DISHONEST: dict[str, tuple[Callable[..., Any], str]] = {
    "popped": (_popped, "loads what the flag forbids"),
    "wrapped": (_wrapped, "loads what the flag forbids"),
    "falls back": (_falls_back, "loads what the flag forbids"),
    "falls back in secret": (_falls_back_in_secret, "builds what the flag forbids"),
    "before the flag": (_before_the_flag, "does not know it"),
    "refuses everything": (_refuses_everything, "refuses a text too"),
    "returns what it likes": (_returns_what_it_likes, "returns something else than it loads"),
    "something else": (_does_something_else, "FileNotFoundError instead of a refusal"),
}


@pytest.mark.parametrize(("load", "found"), _DISHONEST.values(), ids=_DISHONEST)
def test_loader_that_ignores_the_flag_is_refused(
    monkeypatch: pytest.MonkeyPatch, load: Callable[..., Any], found: str
) -> None:
    """Nothing is loaded, not even a file that is harmless."""
    data = saved({"a": 1})
    monkeypatch.setattr(torch, "load", load)

    with pytest.raises(FlagNotHonoured, match=f"torch.load: expected it to honour .*{found}"):
        ours(data)


@pytest.mark.parametrize("load", _HONEST.values(), ids=_HONEST)
def test_loader_that_honours_the_flag_is_used(
    monkeypatch: pytest.MonkeyPatch, load: Callable[..., Any]
) -> None:
    """The control: what looks patched but honours the flag passes."""
    monkeypatch.setattr(torch, "load", load)

    assert ours(saved({"a": 1})) == {"a": 1}


def test_signature_would_not_have_told() -> None:
    """The flag is in the signature of a loader that drops it, and not in one that honours it."""
    assert "weights_only" in inspect.signature(_wrapped).parameters
    assert "weights_only" not in inspect.signature(_by_default).parameters


def test_what_was_proven_is_what_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader that is replaced between proof and load is not used."""
    proven = prove_weights_only(torch)
    monkeypatch.setattr(torch, "load", _popped)

    assert proven is _STOCK


def test_load_is_never_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof of two loads, then one, all with the flag: no failure is answered with less care."""
    calls: list[object] = []

    def recorded(*arguments: Any, **options: Any) -> Any:
        calls.append(options["weights_only"])
        return _STOCK(*arguments, **options)

    monkeypatch.setattr(torch, "load", recorded)
    ours(saved({"a": 1}))

    assert calls == [True, True, True]


def test_proof_leaves_nothing_behind() -> None:
    """The class of a proof is gone after it, so that nobody can allow it for the next one."""
    before = set(vars(_flag))

    prove_weights_only(torch)

    assert set(vars(_flag)) == before


class Allowed:
    """A class that the application allows for torch."""

    def __init__(self, path: str) -> None:
        """Leave a mark."""
        Path(path).touch()


def test_what_the_process_allows_is_not_allowed_here(tmp_path: Path) -> None:
    """With `add_safe_globals` torch runs its constructor; the table here is closed."""
    marker = tmp_path / "ran"
    data = pickled(call(Allowed.__module__, "Allowed", text(str(marker))))

    with torch.serialization.safe_globals([Allowed]):
        prove_weights_only(torch)
        with pytest.raises(GlobalNotAllowed, match=r"found 'tests\..*\.Allowed'"):
            ours(data)
        assert not marker.exists()
        stock(data)

    assert marker.exists()


@pytest.mark.parametrize("value", ["0", "1"])
def test_environment_cannot_switch_the_flag_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    """The variable that makes torch careless has no effect on a load that says it explicitly."""
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", value)
    marker = tmp_path / "ran"

    assert ours(saved({"a": 1})) == {"a": 1}
    with pytest.raises(GlobalNotAllowed, match=r"found 'os\.system'"):
        ours(pickled(call("os", "system", text(f"touch {marker}"))))
    assert not marker.exists()


def test_proof_asks_nothing_of_a_module_but_its_loader() -> None:
    """Whatever has the loader can be proven."""
    prove_weights_only(SimpleNamespace(load=_STOCK))
