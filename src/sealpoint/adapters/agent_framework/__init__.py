# SPDX-License-Identifier: Apache-2.0
"""Microsoft Agent Framework on a sealed store."""
