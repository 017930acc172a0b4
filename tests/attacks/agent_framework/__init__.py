# SPDX-License-Identifier: Apache-2.0
"""Attacks on workflows of Agent Framework and on what is stored of them."""
