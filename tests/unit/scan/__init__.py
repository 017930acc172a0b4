# SPDX-License-Identifier: Apache-2.0
"""Mirrors src/sealpoint/scan."""
