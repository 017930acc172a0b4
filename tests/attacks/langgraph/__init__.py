# SPDX-License-Identifier: Apache-2.0
"""Attacks on LangGraph's control plane: answers, order, state and the ways around the gate."""
