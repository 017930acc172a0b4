# SPDX-License-Identifier: Apache-2.0
"""Regression tests that run by themselves, without plugins of pytest."""
