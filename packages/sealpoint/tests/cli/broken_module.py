# SPDX-License-Identifier: Apache-2.0
"""A module that cannot be imported."""

message = "broken on purpose"
raise RuntimeError(message)
