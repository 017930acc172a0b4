# SPDX-License-Identifier: Apache-2.0
"""The tests that every backend and anchor must pass, and tools to attack and break them."""
