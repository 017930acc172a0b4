# SPDX-License-Identifier: Apache-2.0
"""The repository tests its own rules: layers, banned calls, documentation, tree."""
