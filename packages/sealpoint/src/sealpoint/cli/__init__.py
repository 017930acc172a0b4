# SPDX-License-Identifier: Apache-2.0
"""The command line. `main` is the command; everything else is private."""

from sealpoint.cli._app import main

__all__ = ["main"]
