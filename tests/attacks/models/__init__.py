# SPDX-License-Identifier: Apache-2.0
"""Threats to loading a model file: each shown on torch's own loader, then refused by ours."""
