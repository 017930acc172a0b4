# SPDX-License-Identifier: Apache-2.0
"""Objects that the person at the command line names: MODULE:OBJECT.

The one place in the package that imports by name. The name comes from the command line of the
person who runs it, who could as well start Python; it never comes from stored data.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

from sealpoint.codec import Registry
from sealpoint.errors import ObjectNotFound

__all__ = ["import_object", "import_registry"]


def import_object(reference: str) -> Any:
    """Import MODULE and return its OBJECT, looking in the current directory first.

    Raises:
        ObjectNotFound: There is no such module or object, or the module fails to import.
    """
    module_name, colon, path = reference.partition(":")
    if not colon or not module_name or not path:
        raise ObjectNotFound(f"object: expected MODULE:OBJECT, found {reference!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as exc:
        message = (
            f"module {module_name!r}: expected it to import, found {type(exc).__name__}: {exc}"
        )
        raise ObjectNotFound(message) from exc
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as exc:
            message = f"object {reference!r}: expected it to exist, found no {name!r}"
            raise ObjectNotFound(message) from exc
    return found


def import_registry(reference: str) -> Registry:
    """Import the registry of an application.

    Raises:
        ObjectNotFound: There is no such object, or it is no registry.
    """
    found = import_object(reference)
    if not isinstance(found, Registry):
        message = f"--registry: expected a sealpoint.Registry, found {type(found).__name__}"
        raise ObjectNotFound(message)
    return found
