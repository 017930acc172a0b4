# SPDX-License-Identifier: Apache-2.0
"""Model files, part by part."""
