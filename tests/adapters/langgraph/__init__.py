# SPDX-License-Identifier: Apache-2.0
"""LangGraph programs, run, killed and resumed over any checkpoint saver."""
