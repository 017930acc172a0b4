# SPDX-License-Identifier: Apache-2.0
"""Attacks on the operator console."""
