# SPDX-License-Identifier: Apache-2.0
"""Real workflows of Agent Framework, on what this package gives them."""
