# SPDX-License-Identifier: Apache-2.0
"""Frozen bytes per format version, their generator, and an independent decoder."""
