# SPDX-License-Identifier: Apache-2.0
"""Doors for frameworks: each translates between one framework and a Sealpoint store.

Nothing is imported here: an adapter brings its framework, and each framework is an extra.
"""
