# SPDX-License-Identifier: Apache-2.0
"""Tests of sealpoint.adapters.langgraph, beside its modules."""
