# SPDX-License-Identifier: Apache-2.0
"""What the command prints and how it exits."""
