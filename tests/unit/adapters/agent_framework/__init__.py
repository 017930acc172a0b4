# SPDX-License-Identifier: Apache-2.0
"""Tests of sealpoint.adapters.agent_framework, beside its modules."""
