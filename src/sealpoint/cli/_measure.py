# SPDX-License-Identifier: Apache-2.0
"""What a rule asks for, as people see it: the same word in the same colour by every verb."""

from sealpoint.cli._terminal import Styled
from sealpoint.gate import Measure

__all__ = ["measure_text"]


def measure_text(measure: Measure) -> Styled:
    """The word of a measure."""
    refused = "bad" if measure == Measure.REFUSE else ""
    return Styled(str(measure), "warning" if measure.asks_people else refused)
