# SPDX-License-Identifier: Apache-2.0
"""A proof, not a promise, that `weights_only` is honoured by the `torch.load` of this process.

A signature proves nothing: a patched `torch.load` can show the parameter and drop its value. So
before each load a tiny checkpoint is loaded that asks for an instance of a class of ours. A loader
that honours the flag refuses it; the instance would do nothing. The class is made for one proof,
under a name nobody can foresee, so that no list of allowed classes can hold it. The same checkpoint
with a text in its place has to load: else the refusal was about something else. The loader that
passed is handed back, to be called itself: what was proven is what is used.

It does not look at torch's version, its settings or the environment: they all show in the proof.
"""

import io
import secrets
import sys
import zipfile
from collections.abc import Callable
from typing import Any, ClassVar

from sealpoint.errors import FlagNotHonoured

__all__ = ["proven_load"]

_EXPECTED = "torch.load: expected it to honour weights_only"


class _Canary:
    """What no honest loader builds; it does nothing but say that it was built."""

    built: ClassVar[list[object]]

    def __init__(self) -> None:
        self.built.append(self)


def proven_load(torch: Any) -> Callable[..., Any]:
    """The `torch.load` that was just proven to honour `weights_only`.

    Raises:
        FlagNotHonoured: It does not know the flag, or ignores it.
    """
    load: Callable[..., Any] = torch.load
    built: list[object] = []
    name = f"Canary{secrets.token_hex(16)}"
    here = sys.modules[__name__]
    setattr(here, name, type(name, (_Canary,), {"built": built}))
    canary = _checkpoint(b"c%b\n%b\n)R" % (__name__.encode(), name.encode()))
    try:
        load(canary, map_location="cpu", weights_only=True, mmap=False)
    except Exception as exc:
        found = _fault(exc, built)
        if found is not None:
            raise FlagNotHonoured(f"{_EXPECTED}, found {found}") from exc
    else:
        raise FlagNotHonoured(f"{_EXPECTED}, found that it loads what the flag forbids")
    finally:
        delattr(here, name)
    control = _checkpoint(b"X%b%b" % (len(name).to_bytes(4, "little"), name.encode()))
    try:
        loaded = load(control, map_location="cpu", weights_only=True, mmap=False)
    except Exception as exc:
        raise FlagNotHonoured(f"{_EXPECTED}, found that it refuses a text too") from exc
    if loaded != name:
        raise FlagNotHonoured(f"{_EXPECTED}, found that it returns something else than it loads")
    return load


def _fault(exc: Exception, built: list[object]) -> str | None:
    """Why an error is not the refusal that was expected, or None when it is."""
    if built:
        return "that it builds what the flag forbids"
    if isinstance(exc, TypeError):
        return "that it does not know it"
    # The class of the first kind belongs to a module that nothing here imports.
    names = {(kind.__module__, kind.__name__) for kind in type(exc).__mro__}
    if ("_pickle", "UnpicklingError") in names or isinstance(exc, RuntimeError):
        return None
    return f"{type(exc).__name__} instead of a refusal"


def _checkpoint(value: bytes) -> io.BytesIO:
    """A file as torch writes it, of one value in the opcodes of pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("canary/data.pkl", b"\x80\x02" + value + b".")
        archive.writestr("canary/byteorder", sys.byteorder)
        archive.writestr("canary/version", "3\n")
    file.seek(0)
    return file
