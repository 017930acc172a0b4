# SPDX-License-Identifier: Apache-2.0
"""Settings whose directories lie below a directory of the test."""

from pathlib import Path

from sealpoint.config import Settings


def settings(base: Path) -> Settings:
    """Settings with both directories below `base`; neither is made."""
    return Settings(
        store=None,
        identity="worker",
        namespace="default",
        config_dir=base / "config",
        state_dir=base / "state",
    )
