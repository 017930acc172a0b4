# SPDX-License-Identifier: Apache-2.0
"""Measurements side by side with the peers; `make bench` prints ratios, never absolute claims."""
