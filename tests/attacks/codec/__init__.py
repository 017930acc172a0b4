# SPDX-License-Identifier: Apache-2.0
"""Threats to decoding: hostile bytes against a registry, flat and as a tree."""
