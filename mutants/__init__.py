# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of what decides: small faults are planted, and the tests have to notice."""
