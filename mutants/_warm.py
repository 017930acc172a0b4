# SPDX-License-Identifier: Apache-2.0
"""What children need and no fault touches, imported once before they are forked."""

import importlib
import sys

__all__ = ["load_everything_else"]

_MODULES = (
    "_pytest.assertion.rewrite",
    "asyncio",
    "click.testing",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "hypothesis.extra._patching",
    "hypothesis.stateful",
    "hypothesis.strategies",
    "msgspec.json",
    "nacl.bindings",
    "ormsgpack",
    "platformdirs",
    "pydantic",
    "rich.console",
    "rich.table",
    "sqlite3",
    "tomllib",
)


def load_everything_else() -> None:
    """Import the packages that ours is built on; what is not installed is left out."""
    for name in _MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    ours = [name for name in sys.modules if name.split(".")[0] in ("sealpoint", "tests")]
    if ours:
        raise RuntimeError(f"expected nothing of ours to be imported, found {ours[:3]}")
