# SPDX-License-Identifier: Apache-2.0
"""The program `models`: any bytes for the reader of safetensors files."""

from fuzz._claim import Parts
from fuzz._model_changes import FileChanger
from fuzz._model_seeds import seeds
from fuzz.model_file_is_read_or_refused import Target

__all__ = ["models_parts"]


def models_parts(target: Target | None = None) -> Parts:
    """The parts of the program, over a claim with a planted fault if there is one."""
    return Parts(target=target or Target(), seeds=seeds, changer=FileChanger)
