# SPDX-License-Identifier: Apache-2.0
"""The program `pickles`: any bytes for the readers of pickles and of files of torch."""

from fuzz._claim import Parts
from fuzz._pickle_changes import PickleChanger
from fuzz._pickle_seeds import seeds
from fuzz.pickle_is_data_or_refused import Target

__all__ = ["pickles_parts"]


def pickles_parts(target: Target | None = None) -> Parts:
    """The parts of the program, over a claim with a planted fault if there is one."""
    return Parts(target=target or Target(), seeds=seeds, changer=PickleChanger)
