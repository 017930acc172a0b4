# SPDX-License-Identifier: Apache-2.0
"""Processes that race, fork, fail and die on one store: nothing acknowledged is lost."""
