# SPDX-License-Identifier: Apache-2.0
"""Warm handles against cold ones, on a store that somebody edits meanwhile."""
