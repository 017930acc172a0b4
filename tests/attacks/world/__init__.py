# SPDX-License-Identifier: Apache-2.0
"""Worlds that somebody changed so that nobody would notice."""
