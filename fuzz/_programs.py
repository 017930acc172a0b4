# SPDX-License-Identifier: Apache-2.0
"""The fuzz programs by name, and what each of them must run.

A program's parts are imported when they are asked for: atheris instruments modules as they are
imported, and coverage counts what importing them runs.
"""

from dataclasses import dataclass
from pathlib import Path

from fuzz._claim import Parts

__all__ = ["PROGRAMS", "Program", "parts_of"]

_PACKAGES = Path(__file__).resolve().parents[1] / "packages"
_PACKAGE = _PACKAGES / "sealpoint" / "src" / "sealpoint"
_MODELS = _PACKAGES / "sealpoint-models" / "src" / "sealpoint_models"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One fuzz program."""

    name: str
    covers: str
    """What its cases run, in words."""
    files: tuple[Path, ...]
    """The same, as files."""
    percent_min: float
    """How much of them the cases must run."""
    instrumented: tuple[str, ...]
    """The packages whose branches guide atheris."""


PROGRAMS = {
    "decode": Program(
        name="decode",
        covers="the codec",
        files=tuple(sorted((_PACKAGE / "codec").glob("*.py"))),
        percent_min=95.0,
        instrumented=("sealpoint.codec",),
    ),
    "models": Program(
        name="models",
        covers="the model file reader",
        files=tuple(
            # Strict: a file that was renamed or merged is missed here, and not after the fuzzing.
            (_MODELS / f"{name}.py").resolve(strict=True)
            for name in (
                "_state_building",
                "_model_file",
                "_structure_nodes",
                "_device_placement",
                "scan/_safetensors",
            )
        ),
        percent_min=94.0,
        instrumented=("sealpoint.codec", "sealpoint_models"),
    ),
    "pickles": Program(
        name="pickles",
        covers="the pickle reader",
        files=(
            _PACKAGE / "pickled_types.py",
            *(
                (_MODELS / f"{name}.py").resolve(strict=True)
                for name in (
                    "_tensor_maker",
                    "_torch_files",
                    "scan/_numpy_arrays",
                    "scan/_known_types",
                    "scan/_pickle_machine",
                    "scan/_pickle_allowed_calls",
                    "scan/_pickle_reader",
                    "scan/_pickle_symbols",
                    "scan/_torch_tensors",
                    "scan/_torch_wrappings",
                )
            ),
        ),
        percent_min=88.0,
        instrumented=("sealpoint_models",),
    ),
}


def parts_of(name: str) -> Parts:
    """The parts of a program."""
    if name == "models":
        from fuzz._models_parts import models_parts  # noqa: PLC0415 - see above

        return models_parts()
    if name == "pickles":
        from fuzz._pickles_parts import pickles_parts  # noqa: PLC0415 - see above

        return pickles_parts()
    from fuzz._decode_parts import decode_parts  # noqa: PLC0415 - see above

    return decode_parts()
