# SPDX-License-Identifier: Apache-2.0
"""The engine of atheris: libFuzzer, guided by which branches of the codec a case runs.

Atheris instruments modules as they are imported, so the package must not be loaded before; and it
never returns, so what a run has to say is on disk before it ends.
"""

import random
import sys
from pathlib import Path

__all__ = ["fuzz"]

_CASE_BYTES_MAX = 20_000
_CACHED = 20_000


def fuzz(output: Path, own: Path, *, seed: int, seconds: float) -> None:
    """Try cases until the time is over, then end the process."""
    import atheris  # noqa: PLC0415 - optional

    with atheris.instrument_imports(include=["sealpoint.codec"]):
        import sealpoint.codec  # noqa: F401, PLC0415 - see above

    from fuzz._mutate import Mutator  # noqa: PLC0415 - loads the package
    from fuzz._seeds import known_labels, seeds  # noqa: PLC0415
    from fuzz._session import Session, bound_memory  # noqa: PLC0415
    from fuzz._tokens import Token, parse  # noqa: PLC0415
    from fuzz.decode_never_executes import IS_TREE, Case, Target  # noqa: PLC0415

    target = Target()
    rng = random.Random(seed)
    mutator = Mutator(rng, known_labels(target.registry))
    session = Session(target, output, own)
    parsed: dict[bytes, tuple[int, list[tuple[bytes, Token]]]] = {}

    def mutate(data: bytes, size_max: int, _seed: int) -> bytes:
        found = parsed.get(data)
        if found is None:
            case = Case.parse(data)
            blobs = case.blobs if case.selector & IS_TREE else ((b"", case.data),)
            found = case.selector, [(name, parse(blob)) for name, blob in blobs]
            for _, root in found[1]:
                mutator.learn(root)
            if len(parsed) > _CACHED:
                parsed.clear()
            parsed[data] = found
        return bytes(mutator.changed(*found))[:size_max]

    first = own / "seeds"
    first.mkdir(parents=True)
    for number, data in enumerate(seeds(target.registry)):
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
