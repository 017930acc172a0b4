# SPDX-License-Identifier: Apache-2.0
"""What every backend and anchor must pass, and tools to attack and break them."""
