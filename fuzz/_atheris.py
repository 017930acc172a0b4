# SPDX-License-Identifier: Apache-2.0
"""The engine of atheris: libFuzzer, guided by which branches a case runs.

Atheris instruments modules as they are imported, so the package must not be loaded before; and it
never returns, so what a run has to say is on disk before it ends.
"""

import importlib
import random
import sys
from pathlib import Path
from typing import Any

from fuzz._programs import Program, parts_of

__all__ = ["fuzz"]

_CASE_BYTES_MAX = 20_000
_CACHED = 20_000


def fuzz(program: Program, output: Path, own: Path, *, seed: int, seconds: float) -> None:
    """Try cases until the time is over, then end the process."""
    import atheris  # noqa: PLC0415 - optional

    with atheris.instrument_imports(include=list(program.instrumented)):
        for package in program.instrumented:
            importlib.import_module(package)

    from fuzz._session import Session, bound_memory  # noqa: PLC0415 - after the package

    parts = parts_of(program.name)
    changer = parts.changer(random.Random(seed))
    session = Session(parts.target, output, own)
    parsed: dict[bytes, Any] = {}

    def mutate(data: bytes, size_max: int, _seed: int) -> bytes:
        if data not in parsed:
            if len(parsed) > _CACHED:
                parsed.clear()
            parsed[data] = changer.parse(data)
        return changer.changed(parsed[data])[:size_max]

    first = own / "seeds"
    first.mkdir(parents=True)
    for number, data in enumerate(parts.seeds()):
        (first / f"{number:05}").write_bytes(data)
    options = [
        sys.argv[0],
        f"-max_total_time={max(int(seconds - session.seconds), 1)}",
        f"-seed={seed % (1 << 31) + 1}",
        f"-max_len={_CASE_BYTES_MAX}",
        *("-verbosity=0", "-print_final_stats=0", "-timeout=60", "-rss_limit_mb=0"),
        f"-artifact_prefix={own}/",
        str(output / "corpus"),
        str(first),
    ]
    bound_memory()
    atheris.Setup(options, session.run, custom_mutator=mutate)
    atheris.Fuzz()
