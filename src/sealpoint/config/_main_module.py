# SPDX-License-Identifier: Apache-2.0
"""What the started program would be called if somebody imported it.

Python calls it `__main__` in its own process only. Whoever writes down a name that another
process should find again, such as that of a type or of a function, asks here.
"""

import sys
from pathlib import Path

__all__ = ["imported_name"]

# The second is the same program in a process that multiprocessing started.
_STARTED = ("__main__", "__mp_main__")


def imported_name(module: str) -> str:
    """The name of a module as an import gives it.

    For the started program that is the name after `-m`, or the name of its file without `.py`.
    Where there is neither, as in an interactive session, it stays `__main__`.
    """
    if module not in _STARTED:
        return module
    started = sys.modules.get(module)
    spec = getattr(started, "__spec__", None)
    if spec is not None and spec.name not in _STARTED:
        return str(spec.name)
    file = getattr(started, "__file__", None)
    return Path(file).stem if isinstance(file, str) else _STARTED[0]
