# SPDX-License-Identifier: Apache-2.0
"""Proof that mutation testing plants faults, and tells which of them the tests notice."""
