# SPDX-License-Identifier: Apache-2.0
"""Worlds: their forms, their one encoding, their leaves and what differs between two."""
