# SPDX-License-Identifier: Apache-2.0
"""`python -m sealpoint` is the command."""

from sealpoint.cli import main

if __name__ == "__main__":
    main(prog_name="sealpoint")
