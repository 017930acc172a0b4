# SPDX-License-Identifier: Apache-2.0
"""Frameworks through their doors: the same programs, with our stores underneath."""
