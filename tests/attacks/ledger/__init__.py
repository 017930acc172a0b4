# SPDX-License-Identifier: Apache-2.0
"""Threats to the ledger: somebody who can write the store, against every way to read it."""
